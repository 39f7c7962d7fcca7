package loop_test

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace"
)

// BenchmarkPass is what the loop costs in a pass that changes nothing: the author does nothing.
func BenchmarkPass(b *testing.B) {
	cfg := testenv.Start(b)
	testenv.InstallFS(b, cfg, probe.CRDs)
	admin, namespace := testenv.Client(b, cfg, probe.AddToScheme), testenv.Namespace(b, cfg)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: admin.Scheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		b.Fatal(err)
	}
	idle := newAuthor(func(context.Context, *run) loop.Outcome { return loop.Done() })
	controller := loop.New(plain{idle}, options{Trace: trace.NewRing(trace.RingOptions{})})
	if err := controller.SetupWithManager(mgr); err != nil {
		b.Fatal(err)
	}
	obj := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
	if err := admin.Create(b.Context(), obj); err != nil {
		b.Fatal(err)
	}
	go func() { _ = mgr.GetCache().Start(b.Context()) }() // the manager's workers would reconcile too
	mgr.GetCache().WaitForCacheSync(b.Context())
	pass := func() {
		if _, err := controller.Reconcile(b.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}); err != nil {
			b.Fatal(err)
		}
	}
	pass()
	seen := testenv.Wait(b, admin, obj, "the object to become Ready", ready)
	cached := &probe.Probe{}
	if !poll.Until(func() bool {
		_ = mgr.GetClient().Get(b.Context(), client.ObjectKeyFromObject(obj), cached)
		return cached.ResourceVersion == seen.ResourceVersion
	}) {
		b.Fatal("the cache does not show the object as it is")
	}
	b.ReportAllocs()
	for b.Loop() {
		pass()
	}
}

// plain has Reconcile alone.
type plain struct{ a *author }

func (p plain) Reconcile(ctx context.Context, r *run) loop.Outcome { return p.a.reconcile(ctx, r) }
