package loop_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// gathering is an ordinary reconciler whose first calls, one for each of many objects, wait for each other. That for the
// object p0 then goes on until it is released.
type gathering struct {
	client.Client
	together, release chan struct{}

	mu       sync.Mutex
	inFlight map[string]int
	most     int            // calls at a time for one object
	calls    map[string]int // by object
	size     map[string]int // that the last call saw
}

const gathered = 4 // as many as a controller has workers

func (g *gathering) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	g.mu.Lock()
	g.inFlight[req.Name]++
	g.most = max(g.most, g.inFlight[req.Name])
	first := g.calls[req.Name] == 0
	if g.calls[req.Name]++; first && len(g.calls) == gathered {
		close(g.together)
	}
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.inFlight[req.Name]--
	}()
	waits := []chan struct{}{g.together}
	if req.Name == "p0" {
		waits = append(waits, g.release)
	}
	for _, wait := range waits {
		select {
		case <-wait:
		case <-ctx.Done():
			return ctrl.Result{}, ctx.Err()
		}
	}
	p := &probe.Plain{}
	if err := g.Get(ctx, req.NamespacedName, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.size[req.Name] = p.Spec.Size
	return ctrl.Result{}, nil
}

// TestRowsOfWrapped: what an ordinary reconciler has of the loop, on an API server. TestTimelinesOfWrapped and TestRetriesOfWrapped
// have what is about time.
func TestRowsOfWrapped(t *testing.T) {
	t.Parallel()
	t.Run("002-02 002-03 calls for different objects at a time, and never two for one", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		g := &gathering{
			together: make(chan struct{}), release: make(chan struct{}),
			inFlight: map[string]int{}, calls: map[string]int{}, size: map[string]int{},
		}
		w.manage(func(mgr ctrl.Manager) error {
			g.Client = mgr.GetClient()
			return loop.New(loop.Wrap[*probe.Plain](g), loop.Options[*probe.Plain]{}).SetupWithManager(mgr)
		})
		for n := range gathered {
			createAs(t, w, plainNamed(fmt.Sprintf("p%d", n)))
		}
		select {
		case <-g.together:
		case <-time.After(poll.Patience):
			t.Fatal("no call came beside another")
		}
		const last = 20
		for size := 1; size <= last; size++ {
			patchAs(t, w, plainNamed("p0"), false, fmt.Sprintf(`{"spec":{"size":%d}}`, size))
		}
		close(g.release)
		seen := func() (size, most, calls int) {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.size["p0"], g.most, g.calls["p0"]
		}
		poll.Until(func() bool { size, _, calls := seen(); return size == last && calls > 1 }) // the first call may see it, too
		if size, most, calls := seen(); size != last || most != 1 || calls < 2 {
			t.Errorf("the last of %d calls saw size %d, and %d went on at a time; want size %d, and one at a time", calls, size, most, last)
		}
	})
	t.Run("002-30 002-33 the loop sets observedGeneration after each success, beside what the reconciler writes", func(t *testing.T) {
		t.Parallel()
		const broken = 7
		w := newNamespaceTest(t)
		name := "observed-" + w.namespace // whose metrics are those of this run
		w.manage(func(mgr ctrl.Manager) error {
			c := mgr.GetClient()
			r := reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
				g := &probe.Gauge{}
				if err := c.Get(ctx, req.NamespacedName, g); err != nil {
					return ctrl.Result{}, err
				}
				if g.Spec.Size == broken {
					return ctrl.Result{}, errBroken
				}
				if note := fmt.Sprint("size ", g.Spec.Size); g.Status.Note != note {
					g.Status.Note = note
					return ctrl.Result{}, c.Status().Update(ctx, g)
				}
				return ctrl.Result{}, nil
			})
			o := loop.Options[*probe.Gauge]{Name: name, Generation: loop.ObservedGeneration, Retry: linear(-1)}
			return loop.New(loop.Wrap[*probe.Gauge](r), o).SetupWithManager(mgr)
		})
		createAs(t, w, gaugeNamed("a"))
		for generation := range int64(3) {
			if generation > 0 {
				patchAs(t, w, gaugeNamed("a"), false, fmt.Sprintf(`{"spec":{"size":%d}}`, generation))
			}
			testenv.Wait(t, w.admin, liveGauge(t, w), "both parts of the status", func(g *probe.Gauge) bool {
				return g.Status.ObservedGeneration == generation+1 && g.Status.Note == fmt.Sprint("size ", generation)
			})
		}
		if n := measured(t, "trimtab_failures_total", "controller", name); n != 0 {
			t.Errorf("%v failures", n)
		}
		patchAs(t, w, gaugeNamed("a"), false, fmt.Sprintf(`{"spec":{"size":%d}}`, broken))
		poll.Until(func() bool { return measured(t, "trimtab_failures_total", "controller", name) > 0 })
		w.stop()
		if g := liveGauge(t, w); g.Status.ObservedGeneration != 3 || g.Generation != 4 {
			t.Errorf("after a failure, observedGeneration is %d, want 3 of %d", g.Status.ObservedGeneration, g.Generation)
		}
		if n := measured(t, "trimtab_passes_total", "controller", name); n > 20 {
			t.Errorf("%v passes for four generations", n)
		}
	})
	t.Run("002-63 002-64 its passes are measured, and its lines have the seven keys", func(t *testing.T) {
		t.Parallel()
		l := &logged{}
		w := newNamespaceTest(t)
		name := "measured-" + w.namespace
		w.log = l.logger()
		called := make(chan string, 100)
		w.manage(func(mgr ctrl.Manager) error {
			calls := 0
			r := reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
				p := &probe.Plain{}
				if err := mgr.GetClient().Get(ctx, req.NamespacedName, p); err != nil {
					return ctrl.Result{}, err
				}
				logf.FromContext(ctx).Info("by the context")
				defer func() { called <- p.ResourceVersion }()
				if calls++; calls == 1 {
					return ctrl.Result{}, errBroken
				}
				return ctrl.Result{}, nil
			})
			return loop.New(loop.Wrap[*probe.Plain](r), loop.Options[*probe.Plain]{Name: name, Retry: linear(0)}).SetupWithManager(mgr)
		})
		p := plainNamed("a")
		createAs(t, w, p)
		for range 2 {
			<-called
		}
		w.stop()
		got := map[string]float64{}
		want := map[string]float64{"passes_total": 2, "failures_total": 1, "retries_total": 1, "pass_duration_seconds": 2, "events_total": 1, "queue_duration_seconds": 1}
		for metric := range want {
			got[metric] = measured(t, "trimtab_"+metric, "controller", name, "kind", "Plain")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("measured (-want +got):\n%s", diff)
		}
		keys := map[string]any{
			"apiVersion": "probe.trimtab.dev/v1", "kind": "Plain", "name": "a", "namespace": w.namespace,
			"resourceVersion": p.ResourceVersion, "generation": float64(1), "uid": string(p.UID),
		}
		lines := append(l.saying("by the context"), l.saying("Reconciler error")...)
		if len(lines) != 3 {
			t.Errorf("%d lines, want two of the reconciler and that of its failure: %v", len(lines), lines)
		}
		for _, line := range lines {
			if diff := cmp.Diff(keys, resourceKeys(line)); diff != "" || line["logger"] != "Controllers."+name || line["reconcileID"] == nil {
				t.Errorf("%v; keys (-want +got):\n%s", line, diff)
			}
		}
	})
}
