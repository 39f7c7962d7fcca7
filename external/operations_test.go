package external_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// polls counts the calls about an operation.
func (c *cloud) polls(id string) int {
	n := 0
	for _, l := range c.calls(true) {
		if l == "GET /operations/"+id {
			n++
		}
	}
	return n
}

// polled waits until the operator has asked n more times about an operation.
func (w *operatorTest) polled(id string, n int) {
	w.t.Helper()
	before := w.cloud.polls(id)
	if !w.until(func() bool { return w.cloud.polls(id) >= before+n }) {
		w.t.Fatalf("%s was not polled; the cloud had %v", id, w.cloud.calls(true))
	}
}

// endNext ends an operation after it was asked about once more.
func (w *operatorTest) endNext(id, failure string) {
	w.t.Helper()
	w.polled(id, 1)
	w.cloud.end(id, failure)
}

// others are the calls that are not about operations.
func others(calls []string) []string {
	var out []string
	for _, l := range calls {
		if !strings.Contains(l, "/operations/") {
			out = append(out, l)
		}
	}
	return out
}

// TestOperations: what the API works on is followed, and nothing else is called meanwhile.
func TestOperations(t *testing.T) {
	t.Parallel()
	t.Run("a life, with restarts", operatedLife)
	t.Run("E0-84 the reason is in the operation", reasonInOperation)
	t.Run("an update fails", operatedUpdateFails)
	t.Run("the operation is forgotten", forgottenOperation)
	t.Run("the operation cannot be asked about for a while", unreachableOperation)
	t.Run("it takes too long", overdueOperation)
	t.Run("deleted before it is there", deletedDuringCreate)
	t.Run("deleted while it is being created", deletedWhileShown)
	t.Run("the id is in the operation", assignedByOperation)
	t.Run("the driver cannot follow it", unfollowedOperation)
}

// operatedLife creates, changes and deletes in operations, with a new operator in the middle of each.
func operatedLife(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, operated{})
	w.create()
	restarts := func(id, state string) {
		t.Helper()
		w.polled(id, 2)
		before := others(w.cloud.calls(true))
		w.await("to say what goes on", func(o *thing.Thing) bool {
			return o.Status.State == state && strings.Contains(o.Status.Message, `(operation "`+id+`")`)
		})
		w.stop()
		w.start()
		w.polled(id, 2)
		if diff := cmp.Diff(before, others(w.cloud.calls(true))); diff != "" {
			t.Errorf("calls while %s goes on (-want +got):\n%s", id, diff)
		}
		w.cloud.end(id, "")
	}
	restarts("op-1", "Creating")
	w.ready()
	w.resize(2)
	restarts("op-2", "Updating")
	if got := w.ready(); strings.Contains(got.Annotations[api.AnnotationExternal], "op-") {
		t.Errorf("the record has an operation that is done: %s", got.Annotations[api.AnnotationExternal])
	}
	w.delete()
	restarts("op-3", "Terminating")
	w.gone()
	if diff := cmp.Diff([]string{"POST a", "PUT a", "DELETE a"}, w.cloud.calls(false)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// reasonInOperation: only the operation knows why it failed, whether or not something is left of it. Another operator
// says it, too, and nothing is tried again before the spec changes.
func reasonInOperation(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shows bool
		why   string
	}{
		"nothing is left":                     {false, "invalid: no capacity in zone b"},
		"a broken thing is left":              {true, "no capacity in zone b"},
		"a broken thing is left for the spec": {true, "invalid: no capacity in zone b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, operated{})
			w.cloud.with(func() { w.cloud.shows = test.shows })
			w.create()
			w.endNext("op-1", test.why)
			told := func(o *thing.Thing) bool {
				f := condition(o, "Failed")
				return f.Status == "True" && strings.Contains(f.Message, "no capacity in zone b") && is(o, "Creating", "False") && is(o, "Stalled", "True")
			}
			w.await("to say why", told)
			w.stop()
			w.start()
			w.polled("op-1", 1)
			w.until(func() bool { return w.trace.rests("a") })
			if got := w.get("a"); !told(got) {
				t.Errorf("after a restart: %+v", got.Status)
			}
			if diff := cmp.Diff([]string{"POST a"}, w.cloud.calls(false)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// operatedUpdateFails: an update that the API accepted and could not do counts as one that failed, however often.
func operatedUpdateFails(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, operated{})
	w.create()
	w.endNext("op-1", "")
	w.ready()
	history := w.follow("a")
	w.resize(2)
	for _, id := range []string{"op-2", "op-3", "op-4", "op-5"} {
		w.endNext(id, "the disk is full")
		history.until("UpdateFailed by "+id, func(o *thing.Thing) bool {
			f := condition(o, "Failed")
			return f.Status == "True" && f.Reason == "UpdateFailed" && strings.Contains(f.Message, "the disk is full") && is(o, "Updating", "True")
		})
	}
	w.endNext("op-6", "invalid: size 2 is not for sale")
	w.failing("UpdateInvalid")
	w.poke("1") // asks for another try
	w.endNext("op-7", "invalid: size 2 is not for sale")
	w.await("to be refused", func(o *thing.Thing) bool {
		return o.Status.HandledReconcile == "1" && condition(o, "Failed").Reason == "UpdateInvalid"
	})
	w.quiet(200 * time.Millisecond)
	w.resize(3)
	w.endNext("op-8", "")
	w.ready()
}

// forgottenOperation: the API does not know the operation any more, so the thing itself shows what became of it.
func forgottenOperation(t *testing.T) {
	t.Parallel()
	for name, done := range map[string]bool{"done": true, "not done": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, operated{})
			w.create()
			w.polled("op-1", 1)
			if done {
				w.cloud.end("op-1", "")
			}
			w.cloud.with(func() {
				w.cloud.operations["op-x"] = &operation{Done: true}
				delete(w.cloud.operations, "op-1")
			})
			if !done {
				w.endNext("op-2", "")
			}
			w.ready()
			if got, want := w.cloud.count(http.MethodPost), map[bool]int{true: 1, false: 2}[done]; got != want {
				t.Errorf("%d creates, want %d", got, want)
			}
		})
	}
}

// unreachableOperation: a poll that fails is a failure beside what is in progress, and nothing else is called.
func unreachableOperation(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, operated{})
	w.create()
	w.polled("op-1", 1)
	before := others(w.cloud.calls(true))
	w.cloud.faulty(always(http.MethodGet, answer{code: http.StatusInternalServerError, body: "out of order"}))
	w.await("to be both", func(o *thing.Thing) bool {
		return is(o, "Creating", "True") && condition(o, "Failed").Reason == "PollFailed" && strings.Contains(o.Status.Message, "cannot follow the operation on")
	})
	w.cloud.faulty(nil)
	w.await("to go on", func(o *thing.Thing) bool { return is(o, "Creating", "True") && is(o, "Failed", "False") })
	if diff := cmp.Diff(before, others(w.cloud.calls(true))); diff != "" {
		t.Errorf("other calls (-want +got):\n%s", diff)
	}
	w.cloud.end("op-1", "")
	w.ready()
}

// overdueOperation is canceled once, and asked about until it ends.
func overdueOperation(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, operated{}, func(o *options) { o.OperationDeadline = 100 * time.Millisecond })
	w.create()
	got := w.failing("Timeout")
	if m := got.Status.Message; !strings.Contains(m, `takes longer than 100ms (operation "op-1"); waiting until it ends`) || !is(got, "Creating", "True") {
		t.Errorf("message %q, conditions %+v", m, got.Status.Conditions)
	}
	w.polled("op-1", 3)
	if diff := cmp.Diff([]string{"POST a", "DELETE /operations/op-1"}, w.cloud.calls(false)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	w.cloud.end("op-1", "canceled")
	w.endNext("op-2", "")
	w.ready()
}

// deletedDuringCreate: what is being created cannot be read yet. The object stays until it can, or until the API gives up.
func deletedDuringCreate(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]string{"the API goes on": "", "the API cancels": "canceled"} {
		for how, restart := range map[string]bool{"": false, ", with a new operator": true} {
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				w := newOperatorTest(t, operated{})
				w.create()
				w.polled("op-1", 1)
				if restart {
					w.stop()
				}
				w.delete()
				if restart {
					w.start()
				}
				w.await("to wait for the creation", func(o *thing.Thing) bool {
					return strings.HasSuffix(o.Status.Message, `is deleted when its creation ends (operation "op-1")`) && is(o, "Deleting", "True") && is(o, "Creating", "False")
				})
				w.polled("op-1", 3)
				want := []string{"POST a", "DELETE /operations/op-1"}
				if w.cloud.end("op-1", failure); failure == "" {
					w.endNext("op-2", "")
					want = append(want, "DELETE a")
				}
				w.gone()
				if diff := cmp.Diff(want, w.cloud.calls(false)); diff != "" || len(w.cloud.live()) > 0 {
					t.Errorf("left %v; changes (-want +got):\n%s", w.cloud.live(), diff)
				}
			})
		}
	}
}

// deletedWhileShown: what can be read is deleted at once.
func deletedWhileShown(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, operated{})
	w.cloud.with(func() { w.cloud.shows = true })
	w.create()
	w.polled("op-1", 1)
	w.delete()
	w.endNext("op-2", "")
	w.gone()
	if diff := cmp.Diff([]string{"POST a", "DELETE a"}, w.cloud.calls(false)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// assignedByOperation: the API tells the id when the creation is done. The answers to the first create are lost together with
// the operator; its operation fails; the second one succeeds.
func assignedByOperation(t *testing.T) {
	t.Parallel()
	w := loseAnswer(t, ordered{}, assigns(true))
	w.start()
	w.polled("op-1", 1)
	w.stop()
	w.start()
	w.endNext("op-1", "no capacity")
	w.polled("op-2", 1)
	w.stop()
	w.start()
	w.endNext("op-2", "")
	got := w.ready()
	// A process that starts may have an old copy of the object, without the operation, and then repeats a create with its
	// token, which begins no other operation: the deletion is op-3.
	if live := w.cloud.live(); len(live) != 1 || got.Status.External.ID != live[0] || w.cloud.count(http.MethodPost) < 3 {
		t.Errorf("things %v, the object has %+v; calls %v", live, got.Status.External, w.cloud.calls(false))
	}
	w.delete()
	w.endNext("op-3", "")
	w.gone()
}

// unfollowedOperation: observations show what a driver does not ask about.
func unfollowedOperation(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, unpolled{operated{}})
	w.cloud.with(func() { w.cloud.shows = true })
	w.create()
	w.await("Creating", func(o *thing.Thing) bool { return is(o, "Creating", "True") })
	w.cloud.end("op-1", "")
	w.ready()
}
