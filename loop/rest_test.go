package loop_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
	"github.com/trimtab-dev/trimtab/trigger"
)

// few is how many objects are at rest together in memory.
const few = 100

// parent is an author with something to clean up, whose objects have a ConfigMap each.
type parent struct{ passes atomic.Int64 }

func (p *parent) Reconcile(ctx context.Context, r *run) loop.Outcome {
	p.passes.Add(1)
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Obj.Namespace, Name: r.Obj.Name}}
	err := r.Client().Get(ctx, client.ObjectKeyFromObject(child), child)
	if apierrors.IsNotFound(err) {
		if err = controllerutil.SetControllerReference(r.Obj, child, r.Client().Scheme()); err == nil {
			err = r.Client().Create(ctx, child)
		}
	}
	if err != nil {
		return loop.Fail(err)
	}
	return loop.Done()
}

func (p *parent) Cleanup(context.Context, *run) loop.CleanupOutcome { return loop.CleanedUp() }

func (p *parent) options() options {
	return options{Sources: []trigger.Source[*probe.Probe]{trigger.Owned[*probe.Probe]{Of: &corev1.ConfigMap{}}}}
}

// TestAtRest: objects that are Ready cost no request, and no pass.
func TestAtRest(t *testing.T) {
	t.Parallel()
	t.Run("ten minutes, in memory", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var sent counting
			cluster := looptest.Cluster{AddToScheme: probe.AddToScheme, Wrap: []func(http.RoundTripper) http.RoundTripper{sent.wrap}}
			for n := range few {
				cluster.Objects = append(cluster.Objects, &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprintf("p%d", n)}})
			}
			p := &parent{}
			env := looptest.NewEnv(t, loop.New[*probe.Probe](p, p.options()), cluster)
			for range 3 { // the last one meets what the others have done
				for _, obj := range cluster.Objects {
					if r := env.Pass(obj); r.Err != nil {
						t.Fatal(r)
					}
				}
			}
			env.Settle()
			began, before := p.passes.Load(), sent.n.Load()
			for range 10 {
				<-time.After(time.Minute)
				env.Settle()
			}
			if before < 3*few || p.passes.Load() != began || sent.n.Load() != before {
				t.Errorf("%d requests before, %d passes and %d requests in ten minutes", before, p.passes.Load()-began, sent.n.Load()-before)
			}
		})
	})
	// With an API server, what comes by itself counts, too. TRIMTAB_DEEP=1 listens to a thousand objects for ten minutes.
	t.Run("on an API server", func(t *testing.T) {
		t.Parallel()
		crowd, listened := int64(200), 10*time.Second
		if os.Getenv("TRIMTAB_DEEP") != "" {
			crowd, listened = 1000, 10*time.Minute
		}
		w, p := newNamespaceTest(t), &parent{}
		w.start(p, p.options())
		next := atomic.Int64{}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for n := next.Add(1); n <= crowd; n = next.Add(1) {
					obj := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("p%d", n)}}
					if err := w.admin.Create(t.Context(), obj); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		// What the objects' own last events cause is over when all are Ready and nothing has happened for three seconds.
		last, silent := -1, 0
		for unready := w.unready(); silent < 3 || len(unready) > 0; unready = w.unready() {
			<-time.After(time.Second) // a silence can only be listened to
			now := len(w.requests.All()) + int(p.passes.Load())
			if silent++; now != last {
				last, silent = now, 0
			}
			if silent > 60 || t.Failed() {
				t.Fatalf("%d objects are not Ready, and nothing has happened for %d s: %v", len(unready), silent, unready)
			}
		}
		began, before := p.passes.Load(), len(w.requests.All())
		<-time.After(listened)
		asked := 0
		for _, r := range w.requests.All()[before:] {
			if r.Verb != "watch" { // a watch is asked for again after some minutes
				asked++
				t.Errorf("asked at rest: %s", r)
			}
		}
		if n := p.passes.Load() - began; n != 0 {
			t.Errorf("%d passes at rest", n)
		}
		t.Logf("%d objects: %d requests before, %d in %s", crowd, before, asked, listened)
	})
}

// counting counts requests.
type counting struct{ n atomic.Int64 }

func (c *counting) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		c.n.Add(1)
		return next.RoundTrip(r)
	})
}

// unready returns the Probes that are not Ready.
func (w *controllerTest) unready() (all []string) {
	w.t.Helper()
	var list probe.ProbeList
	if err := w.admin.List(w.t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		if p := &list.Items[i]; !ready(p) {
			all = append(all, fmt.Sprintf("%s: %s %s", p.Name, p.Status.State, p.Status.Message))
		}
	}
	return all
}
