package external_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

func needs(name string) func(*thing.Thing) { return func(o *thing.Thing) { o.Spec.Needs = name } }

// pending waits until an object waits for another one.
func (w *operatorTest) pending(name, on string) *thing.Thing {
	w.t.Helper()
	return w.awaitAs(name, "pending for "+on, func(o *thing.Thing) bool {
		return o.Status.State == "Pending" && strings.Contains(condition(o, "DependenciesReady").Message, on)
	})
}

// roleTest are things that need several others.
type roleTest struct {
	named

	mu    sync.Mutex
	found map[string]client.Object
}

func (r *roleTest) DependsOn(t *thing.Thing) []external.Dependency {
	all := []external.Dependency{{Role: "other", To: &thing.Thing{}, Name: t.Spec.Needs}}
	switch {
	case t.Spec.Needs == "" && t.Name != "":
		return nil
	case t.Name == "twice":
		return append(all, all...)
	}
	return append(all, external.Dependency{To: &thing.Thing{}, Name: "b"}, external.Dependency{To: &thing.Thing{}, Name: "c"})
}

func (r *roleTest) Observe(ctx context.Context, q external.ObserveRequest[*thing.Thing, *cloudClient]) (observation, error) {
	if q.Object.Name == "a" {
		r.mu.Lock()
		r.found = q.Dependencies
		r.mu.Unlock()
	}
	return r.named.Observe(ctx, q)
}

func (r *roleTest) seen() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, role := range slices.Sorted(maps.Keys(r.found)) {
		all = append(all, role+"="+r.found[role].GetName())
	}
	return strings.Join(all, ", ")
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.create(needs("b"))
	t.Run("a missing dependency is waited for and is no failure", func(t *testing.T) {
		got := w.pending("a", "Thing "+w.namespace+"/b: it does not exist")
		if is(got, "Failed", "True") || !is(got, "DependenciesReady", "False") || !is(got, "Ready", "False") {
			t.Errorf("conditions %+v", got.Status.Conditions)
		}
		w.quiet(300 * time.Millisecond)
		if calls := w.cloud.calls(true); len(calls) != 0 {
			t.Errorf("calls %v", calls)
		}
		for _, e := range w.events() {
			if strings.Contains(e, `"type":"Warning"`) {
				t.Errorf("event %s", e)
			}
		}
	})
	t.Run("it goes on by event", func(t *testing.T) {
		w.createAs("b")
		got := w.ready()
		if !is(got, "DependenciesReady", "True") {
			t.Errorf("conditions %+v", got.Status.Conditions)
		}
	})
	t.Run("D-05 what is made stays ready, and is not changed meanwhile", func(t *testing.T) {
		w.cloud.settle("LIMPING")
		w.cloud.change("a", func(i *item) { i.State = "ONLINE" })
		w.change("b", annotated("trimtab.dev/reconcile", "1"))
		got := w.pending("a", "is not ready")
		if !is(got, "Ready", "True") {
			t.Errorf("conditions %+v", got.Status.Conditions)
		}
		w.resize(9)
		w.await("an observation of the new spec", func(o *thing.Thing) bool { return o.Status.ObservedGeneration == o.Generation })
		if n := w.cloud.count("PUT"); n != 0 {
			t.Errorf("%d updates", n)
		}
		w.cloud.settle("ONLINE")
		w.change("b", annotated("trimtab.dev/reconcile", "2"))
		w.ready()
		if got := w.cloud.get("a").Size; got != 9 {
			t.Errorf("size %d", got)
		}
	})
	t.Run("several of one kind, told apart by role or by name", func(t *testing.T) {
		roles := &roleTest{}
		w := newOperatorTest(t, roles)
		w.createAs("b")
		w.createAs("c")
		w.createAs("a", needs("b"))
		w.ready()
		if got := roles.seen(); got != "other=b, thing/b=b, thing/c=c" {
			t.Errorf("dependencies %s", got)
		}
		w.createAs("twice", needs("b"))
		w.awaitAs("twice", "a sentence about roles", func(o *thing.Thing) bool {
			return strings.Contains(o.Status.Message, `returns several dependencies with the role "other"; give each its own Role`)
		})
	})
	t.Run("deleted while waiting", func(t *testing.T) {
		w.createAs("c", needs("nobody"))
		w.pending("c", "nobody: it does not exist")
		w.remove("c")
		if !w.until(func() bool { return apiGone(w, "c") }) {
			t.Error("not gone")
		}
		if w.called("POST", "c") {
			t.Error("created")
		}
	})
}
