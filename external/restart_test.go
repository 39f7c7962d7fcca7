package external_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
)

// age makes the record of an object an hour older, as if it had been written then.
func (w *operatorTest) age(name string) {
	w.t.Helper()
	before, rest, found := strings.Cut(w.get(name).Annotations[api.AnnotationExternal], `"at":"`)
	_, after, ends := strings.Cut(rest, `"`)
	if !found || !ends {
		w.t.Fatalf("the record of %q says no time", name)
	}
	then := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano)
	w.change(name, annotated(api.AnnotationExternal, before+`"at":"`+then+`"`+after))
}

// TestDeletedAfterRestart: objects are deleted just after a restart. Their records are so old
// that nothing can be under way, so it costs what it costs without a restart, and no time.
func TestDeletedAfterRestart(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{}, func(o *options) { o.CreateGrace = 0 })
	names := []string{"a", "b", "c", "d", "e"}
	for _, n := range names {
		w.createAs(n)
	}
	for _, n := range names {
		w.awaitAs(n, "ready", func(o *thing.Thing) bool { return is(o, "Ready", "True") })
	}
	w.stop()
	for _, n := range names {
		w.age(n)
		w.remove(n)
	}
	w.requests.Reset()
	looks := w.cloud.count(http.MethodGet)
	w.start()
	for _, n := range names {
		if !w.until(func() bool { return apiGone(w, n) }) {
			t.Fatalf("%s does not go", n)
		}
		if diff := cmp.Diff([]string{"patch"}, w.writes(n)); diff != "" {
			t.Errorf("writes to %s: the finalizer, nothing else (-want +got):\n%s", n, diff)
		}
		reads := w.requests.Select(func(r testenv.Request) bool { return r.Verb == "get" && r.Resource == "things" && r.Name == n })
		if len(reads) != 1 {
			t.Errorf("%s was read from the API server %d times, want once, before the delete", n, len(reads))
		}
	}
	if n := w.cloud.count(http.MethodGet) - looks; n != 2*len(names) {
		t.Errorf("%d observations of %d things, want one before each delete and one after", n, len(names))
	}
	if n := len(w.cloud.items); n != 0 {
		t.Errorf("%d things are left", n)
	}
	if e := w.events(); slices.ContainsFunc(e, func(e string) bool { return strings.Contains(e, "Verifying") }) {
		t.Errorf("events %v", e)
	}
}

// TestLostWhileDown: a thing is deleted by others while no operator runs. That is reported, and
// what is made instead is another one.
func TestLostWhileDown(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.create()
	w.ready()
	w.stop()
	w.age("a")
	w.cloud.with(func() { delete(w.cloud.items, "a") })
	w.start()
	w.awaitEvent("MissingAfterRestart")
	got := w.await("the second incarnation", func(o *thing.Thing) bool {
		return o.Status.External != nil && o.Status.External.Incarnation == 2 && is(o, "Ready", "True")
	})
	if w.cloud.get("a") == nil {
		t.Errorf("Ready, and nothing is there: %+v", got.Status)
	}
}

// TestCreateAfterRestart: a create was called by a process that is gone, and reads do not show
// yet what it made.
func TestCreateAfterRestart(t *testing.T) {
	t.Parallel()
	const grace = 3 * time.Second
	begin := func(t *testing.T, unique bool) (w *operatorTest, called time.Time) {
		w = newOperatorTest(t, named{}, func(o *options) { o.CreateGrace, o.UniqueNames = grace, unique })
		hidden := func(method, _ string) *answer {
			if method == http.MethodGet {
				return &answer{code: http.StatusNotFound}
			}
			return nil
		}
		w.cloud.faulty(hidden)
		w.create()
		w.awaitCalls(http.MethodPost, 1)
		called = time.Now()
		w.stop()
		return w, called
	}
	t.Run("it is not repeated within the grace", func(t *testing.T) {
		t.Parallel()
		w, _ := begin(t, false)
		w.cloud.with(func() { delete(w.cloud.items, "a") })
		started := time.Now()
		w.start()
		w.awaitCalls(http.MethodPost, 2)
		if waited := time.Since(started); waited < grace {
			t.Errorf("the create was repeated after %s, within the grace of %s", waited, grace)
		}
	})
	t.Run("it is where names are unique, and what is refused then is ours", func(t *testing.T) {
		t.Parallel()
		w, _ := begin(t, true)
		var said []string
		w.cloud.with(func() {
			w.cloud.before = func(method, _ string) {
				if method == http.MethodGet {
					obj := &thing.Thing{}
					_ = w.admin.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "a"}, obj) // not after the test
					w.cloud.with(func() { said = append(said, condition(obj, "Failed").Reason) })
				}
			}
		})
		w.start()
		w.awaitCalls(http.MethodPost, 2)
		w.cloud.faulty(nil)
		w.poke("observe")
		w.ready()
		w.cloud.with(func() {
			if slices.Contains(said, "CreateConflict") {
				t.Errorf("a create that had succeeded was reported as a failure: %v", said)
			}
		})
	})
}

// TestTakenName: the name is taken between the observation and the create. That is somebody else's
// thing, and is reported as such.
func TestTakenName(t *testing.T) {
	t.Parallel()
	refuseTakenName(t)
}

// refuseTakenName lets somebody else take the name just before the create. The object is
// refused, and its deletion leaves that thing alone.
func refuseTakenName(t *testing.T, change ...func(*options)) {
	t.Helper()
	w := prepareOperatorTest(t, named{}, change...)
	w.cloud.with(func() {
		w.cloud.before = func(method, name string) {
			if method == http.MethodPost {
				w.cloud.put(name, item{Size: 7, State: "ONLINE"})
			}
		}
	})
	w.start()
	w.create()
	w.failing("NotOurs")
	w.delete()
	w.gone()
	if w.cloud.get("a") == nil {
		t.Error("somebody else's thing is gone")
	}
}

// TestLyingRefusal: the API makes the thing and answers that it does not, as a driver reports
// whose API fails in a second step.
func TestLyingRefusal(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusUnprocessableEntity, http.StatusForbidden, http.StatusTooManyRequests} {
		t.Run("what bears our mark goes with its object, "+http.StatusText(code), func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, named{}, func(o *options) { o.Loop.Retry.Initial, o.Loop.Retry.Max = time.Hour, time.Hour })
			w.cloud.faulty(always(http.MethodPost, answer{code: code, effect: true, after: "1"}))
			w.create()
			w.awaitCalls(http.MethodPost, 1)
			w.await("a status", func(o *thing.Thing) bool { return o.Status.State != "" })
			w.delete()
			w.gone()
			if w.cloud.get("a") != nil {
				t.Errorf("the object is gone, its thing is not; decisions %v", w.trace.rules("a"))
			}
		})
	}
	t.Run("without marks a person is asked", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{}, func(o *options) { o.Unmarked = true })
		w.cloud.faulty(always(http.MethodPost, answer{code: http.StatusUnprocessableEntity, effect: true}))
		w.create()
		w.failing("CreateInvalid")
		w.cloud.change("a", func(i *item) { i.Tags = nil }) // which this cloud could hold
		w.stop()
		w.delete()
		w.start()
		got := w.failing("CreateDoubtful")
		if m := condition(got, "Failed").Message; !strings.Contains(m, api.AnnotationDeletion) || !strings.Contains(m, "exists") {
			t.Errorf("message %q", m)
		}
		if w.cloud.get("a") == nil {
			t.Error("what may be somebody else's was deleted")
		}
		w.cloud.with(func() { delete(w.cloud.items, "a") })
		w.gone()
	})
	t.Run("without marks, of a name that is taken nothing is doubtful", func(t *testing.T) {
		t.Parallel()
		refuseTakenName(t, func(o *options) { o.Unmarked = true })
	})
}
