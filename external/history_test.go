package external_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// history is every version of an object from a moment on, in the order of the server. It
// misses none, however late the test comes to read it.
type history struct {
	t     *testing.T
	watch watch.Interface
	seen  []*thing.Thing
	gone  bool
}

// follow begins a history of an object, which need not exist yet. What is written after
// follow returns is in it.
func (w *operatorTest) follow(name string) *history {
	w.t.Helper()
	only := &client.ListOptions{Namespace: w.namespace, Raw: &metav1.ListOptions{FieldSelector: "metadata.name=" + name}}
	var now thing.ThingList
	if err := w.admin.List(w.t.Context(), &now, only); err != nil {
		w.t.Fatal(err)
	}
	only.Raw.ResourceVersion = now.ResourceVersion
	changes, err := w.admin.Watch(w.t.Context(), &thing.ThingList{}, only)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(changes.Stop)
	return &history{t: w.t, watch: changes}
}

// until waits for a version that ok takes, and answers all versions up to that one.
func (h *history) until(why string, ok func(*thing.Thing) bool) []*thing.Thing {
	h.t.Helper()
	for !h.gone {
		if h.next(why); !h.gone && ok(h.seen[len(h.seen)-1]) {
			return h.seen
		}
	}
	h.t.Fatalf("the object is gone; waited for %s", why)
	return nil
}

// untilGone waits until the object does not exist, and answers all its versions.
func (h *history) untilGone() []*thing.Thing {
	h.t.Helper()
	for !h.gone {
		h.next("the object to go")
	}
	return h.seen
}

func (h *history) next(why string) {
	h.t.Helper()
	select {
	case e, open := <-h.watch.ResultChan():
		obj, is := e.Object.(*thing.Thing)
		if !open || !is {
			h.t.Fatalf("waiting for %s: the watch ended: %v", why, e)
		}
		h.gone = e.Type == watch.Deleted
		h.seen = append(h.seen, obj)
	case <-time.After(poll.Patience):
		h.t.Fatalf("waited two minutes for %s; the object was\n%+v", why, h.seen)
	}
}

// TestOccurredConditions: a condition exists from its first occurrence on, and stays, also for the next process.
func TestOccurredConditions(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	conditions := func(o *thing.Thing) string {
		var all []string
		for _, c := range o.Status.Conditions {
			all = append(all, c.Type+"="+string(c.Status))
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	want := func(when, want string, o *thing.Thing) {
		t.Helper()
		if got := conditions(o); got != want {
			t.Errorf("%s it has %s, want %s", when, got, want)
		}
	}
	w.create()
	want("created,", "Creating=False DependenciesReady=True Ready=True", w.ready())
	w.resize(2)
	want("updated,", "Creating=False DependenciesReady=True Ready=True Updating=False", w.ready())
	w.cloud.faulty(always(http.MethodGet, answer{code: http.StatusInternalServerError}))
	w.poke("1")
	w.failing("ObserveFailed")
	w.cloud.faulty(nil)
	const whole = "Creating=False DependenciesReady=True Failed=False Ready=True Updating=False"
	settled := func(o *thing.Thing) bool { return conditions(o) == whole }
	w.await("what it has been through", settled)
	w.stop()
	writes := len(w.writes("a"))
	w.start()
	w.pokeAs("a", "2")
	want("after a restart", whole, w.get("a"))
	if n := len(w.writes("a")) - writes; n != 1 { // that the request was answered
		t.Errorf("the restart cost %d writes", n)
	}
	other := newOperatorTest(t, things{})
	other.create(func(o *thing.Thing) { o.Spec.Tier = "hdd" })
	other.ready()
	other.patch(`{"spec":{"tier":"ssd"}}`)
	want("recreated,", "Creating=False DependenciesReady=True Ready=True Updating=False", other.ready())
	w.cloud.put("b", item{Size: 7, State: "ONLINE"})
	w.createAs("b")
	refused := w.awaitAs("b", "to be told whose it is", func(o *thing.Thing) bool { return is(o, "Failed", "True") })
	if condition(refused, "Creating").Type != "" || condition(refused, "Updating").Type != "" {
		t.Errorf("what was neither created nor updated has %s", conditions(refused))
	}
}
