package loop_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
	"github.com/trimtab-dev/trimtab/testenv"
)

// BenchmarkConflicts makes 1,000 passes over 20 objects, each of which updates one ConfigMap and creates another, while the
// cache shows ConfigMaps 500 ms late. It is meant for -benchtime=1x. Design record 20 has what it found.
func BenchmarkConflicts(b *testing.B) {
	for name, mode := range map[string]struct{ ungated, theirs bool }{
		"trimtab": {}, "plain": {ungated: true}, "controller-runtime": {ungated: true, theirs: true},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				conflicts(b, mode.ungated, mode.theirs)
			}
		})
	}
}

func conflicts(b *testing.B, ungated, theirs bool) {
	b.Helper()
	const objects, passes = 20, 1000
	cfg := testenv.Start(b)
	testenv.InstallFS(b, cfg, probe.CRDs)
	admin, namespace := testenv.Client(b, cfg, probe.AddToScheme, clientgoscheme.AddToScheme), testenv.Namespace(b, cfg)
	cfg, requests := testenv.Requests(cfg)
	late := &looptest.Lag{Resource: "configmaps", Delay: 500 * time.Millisecond}
	cfg.Wrap(late.Wrap)
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{probe.AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(s); err != nil {
			b.Fatal(err)
		}
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: s, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:  cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(theirs)}},
	})
	if err != nil {
		b.Fatal(err)
	}
	var made, conflicted, existed, blocked atomic.Int64
	over := make(chan struct{})
	author := newAuthor(func(ctx context.Context, r *run) loop.Outcome {
		began := time.Now()
		err := countUp(ctx, r.Client(), r.Obj)
		blocked.Add(int64(time.Since(began)))
		switch {
		case apierrors.IsConflict(err):
			conflicted.Add(1)
		case apierrors.IsAlreadyExists(err):
			existed.Add(1)
		case err != nil:
			b.Error(err)
		}
		switch n := made.Add(1); {
		case n == passes:
			close(over)
			return loop.Done()
		case n > passes:
			return loop.Done()
		}
		return loop.After(10 * time.Millisecond)
	})
	c := loop.New(loop.Reconciler[*probe.Probe](plain{author}), options{Workers: 4, PlainClient: ungated})
	if err := c.SetupWithManager(mgr); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	began := time.Now()
	for i := range objects {
		if err := admin.Create(ctx, &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("p", i)}}); err != nil {
			b.Fatal(err)
		}
	}
	<-over
	took := time.Since(began)
	gets := requests.Select(func(r testenv.Request) bool { return r.Resource == "configmaps" && r.Verb == "get" })
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64(conflicted.Load()), "conflicts")
	b.ReportMetric(float64(existed.Load()), "existing")
	b.ReportMetric(float64(len(gets)), "gets")
	b.ReportMetric(took.Seconds(), "s")
	b.ReportMetric(float64(blocked.Load())/passes/1e6, "ms/call")
}

// countUp counts in one ConfigMap, and creates one for the count in which that is noted.
func countUp(ctx context.Context, c client.Client, owner *probe.Probe) error {
	counter := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name}}
	err := c.Get(ctx, client.ObjectKeyFromObject(counter), counter)
	if apierrors.IsNotFound(err) {
		return c.Create(ctx, counter)
	}
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(counter.Data["n"])
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: fmt.Sprintf("%s-%d", owner.Name, n/2)}}
	if err := c.Get(ctx, client.ObjectKeyFromObject(one), one); apierrors.IsNotFound(err) {
		if err := c.Create(ctx, one); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	counter.Data = map[string]string{"n": strconv.Itoa(n + 1)}
	return c.Update(ctx, counter)
}
