package external_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// failing waits for Failed=True with a reason.
func (w *operatorTest) failing(reason string) *thing.Thing {
	w.t.Helper()
	return w.await("Failed=True with reason "+reason, func(o *thing.Thing) bool {
		return is(o, "Failed", "True") && condition(o, "Failed").Reason == reason
	})
}

// TestReasons lets each kind of call fail.
func TestReasons(t *testing.T) {
	t.Parallel()
	broken := answer{code: http.StatusInternalServerError, body: "out of order"}
	t.Run("connecting fails under its own reason", func(t *testing.T) {
		w := newOperatorTest(t, things{}, func(o *options) {
			o.Connect = func(context.Context) (*cloudClient, error) { return nil, errors.New("wrong password") }
		})
		w.create()
		got := w.failing("ConnectFailed")
		if !strings.Contains(condition(got, "Failed").Message, "wrong password") || len(w.cloud.calls(true)) != 0 {
			t.Errorf("message %q, calls %v", condition(got, "Failed").Message, w.cloud.calls(true))
		}
	})
	w := newOperatorTest(t, things{})
	w.cloud.faulty(always(http.MethodPost, broken))
	obj := w.create()
	t.Run("creating fails under its own reason", func(t *testing.T) { w.failing("CreateFailed") })
	t.Run("E1-13 goes on when the cause is gone", func(t *testing.T) {
		w.awaitCalls(http.MethodPost, 20)
		if message := condition(w.get("a"), "Failed").Message; !strings.Contains(message, "500 out of order") {
			t.Errorf("message %q", message)
		}
		w.cloud.faulty(nil)
		if got := w.ready(); !is(got, "Failed", "False") {
			t.Errorf("conditions %+v", got.Status.Conditions)
		}
	})
	t.Run("E0-37 an observation fails under its own reason, and Ready stays", func(t *testing.T) {
		w.cloud.faulty(always(http.MethodGet, broken))
		w.poke("1")
		if got := w.failing("ObserveFailed"); !is(got, "Ready", "True") {
			t.Errorf("conditions %+v", got.Status.Conditions)
		}
	})
	t.Run("the same failure again writes nothing", func(t *testing.T) {
		version := w.get("a").ResourceVersion
		w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+10)
		if now := w.get("a").ResourceVersion; now != version {
			t.Errorf("resourceVersion %s, was %s", now, version)
		}
		w.cloud.faulty(nil)
		w.ready()
	})
	t.Run("E0-11 a condition's time is that of its change", func(t *testing.T) {
		ended := condition(w.get("a"), "Failed").LastTransitionTime
		w.until(func() bool { return time.Now().Unix() > ended.Unix() })
		w.cloud.faulty(always(http.MethodGet, broken))
		w.poke("2")
		if again := condition(w.failing("ObserveFailed"), "Failed").LastTransitionTime; !again.After(ended.Time) {
			t.Errorf("failed again at %s, had ended at %s", again, ended)
		}
		w.cloud.faulty(nil)
		w.ready()
	})
	t.Run("E0-28 updating fails under its own reason, beside Updating", func(t *testing.T) {
		w.cloud.faulty(always(http.MethodPut, broken))
		w.resize(2)
		if got := w.failing("UpdateFailed"); !is(got, "Updating", "True") {
			t.Errorf("conditions %+v", got.Status.Conditions)
		}
		w.cloud.faulty(nil)
		w.ready()
	})
	t.Run("E0-24 deleting fails under its own reason, beside Deleting", func(t *testing.T) {
		w.cloud.faulty(always(http.MethodDelete, broken))
		w.delete()
		got := w.failing("DeleteFailed")
		if !is(got, "Deleting", "True") || got.Status.State != "Terminating" {
			t.Errorf("state %s, conditions %+v", got.Status.State, got.Status.Conditions)
		}
		w.cloud.faulty(nil)
		w.gone()
		if w.cloud.get(name(obj)) != nil {
			t.Error("the thing is still there")
		}
	})
}

func TestSlowFailures(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{})
	w.cloud.with(func() { w.cloud.slow = map[string]bool{http.MethodPost: true} })
	w.create()
	w.await("Creating=True", func(o *thing.Thing) bool { return is(o, "Creating", "True") })
	t.Run("E0-19 creating stays beside a poll that fails", func(t *testing.T) {
		w.cloud.faulty(always(http.MethodGet, answer{code: http.StatusInternalServerError}))
		if got := w.failing("ObserveFailed"); !is(got, "Creating", "True") {
			t.Errorf("conditions %+v", got.Status.Conditions)
		}
		w.cloud.faulty(nil)
		w.await("Creating=True, Failed=False", func(o *thing.Thing) bool {
			return is(o, "Creating", "True") && is(o, "Failed", "False")
		})
	})
	t.Run("E0-18 creating ends in failure, with the API's reason", func(t *testing.T) {
		w.cloud.with(func() {
			for _, i := range w.cloud.items {
				i.State, i.Detail = "BROKEN", "no disks left in this region"
			}
		})
		got := w.failing("OutOfStock")
		if !is(got, "Creating", "False") || !strings.Contains(condition(got, "Failed").Message, "no disks left") {
			t.Errorf("conditions %+v", got.Status.Conditions)
		}
	})
	t.Run("what failed for good is left alone", func(t *testing.T) {
		calls := len(w.cloud.calls(true))
		w.quiet(300 * time.Millisecond)
		if n := len(w.cloud.calls(false)); n != 1 {
			t.Errorf("calls %v after %d", w.cloud.calls(true), calls)
		}
	})
	t.Run("what may recover is observed again", func(t *testing.T) {
		w.cloud.settle("ERROR")
		w.poke("1")
		w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+5)
		w.cloud.settle("ONLINE")
		w.ready()
	})
}

// TestRefusal: the API does not want what the spec says.
func TestRefusal(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{})
	w.cloud.faulty(always(http.MethodPost, answer{code: http.StatusBadRequest, body: "bucket missing (request id: 7f3a-99)"}))
	w.create()
	t.Run("E1-10 a missing prerequisite is a failure", func(t *testing.T) {
		got := w.failing("CreateInvalid")
		message := condition(got, "Failed").Message
		if !strings.Contains(message, "bucket missing") || strings.Contains(message, "7f3a") || got.Status.State != "Failed" {
			t.Errorf("state %s, message %q", got.Status.State, message)
		}
	})
	t.Run("refused for good is not asked again", func(t *testing.T) {
		w.quiet(400 * time.Millisecond)
		if n := w.cloud.count(http.MethodPost); n != 1 {
			t.Errorf("%d creates, want 1", n)
		}
	})
	t.Run("a person can ask again", func(t *testing.T) {
		w.poke("once more")
		w.awaitCalls(http.MethodPost, 2)
	})
	t.Run("a new spec is another try", func(t *testing.T) {
		w.cloud.faulty(nil)
		w.resize(2)
		w.ready()
	})
	t.Run("E0-42 three causes, three reasons", func(t *testing.T) {
		seen := map[string]bool{"CreateInvalid": true}
		w.cloud.faulty(always(http.MethodGet, answer{code: http.StatusForbidden, body: "key revoked"}))
		w.poke("2")
		seen[condition(w.failing("ObserveDenied"), "Failed").Reason] = true
		w.cloud.faulty(nil)
		w.cloud.settle("BROKEN")
		w.poke("3")
		seen[condition(w.failing("OutOfStock"), "Failed").Reason] = true
		if len(seen) != 3 {
			t.Errorf("reasons %v", seen)
		}
	})
}

func TestDeletionAfterRefusal(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{}, func(o *options) { o.CreateGrace = time.Hour })
	w.cloud.faulty(always(http.MethodPost, answer{code: http.StatusBadRequest, body: "no such tier"}))
	w.create()
	w.failing("CreateInvalid")
	t.Run("what the API refused to create is released after one observation", func(t *testing.T) {
		calls := len(w.cloud.calls(true))
		w.delete()
		w.gone()
		if now := w.cloud.calls(true)[calls:]; len(now) != 1 || !strings.HasPrefix(now[0], http.MethodGet) {
			t.Errorf("calls %v, want one observation", now)
		}
	})
}

func TestHangs(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{}, func(o *options) { o.CallDeadline = 200 * time.Millisecond })
	w.cloud.faulty(always(http.MethodGet, answer{hang: true}))
	w.create()
	t.Run("E1-16 a call that hangs ends at its deadline", func(t *testing.T) {
		got := w.failing("Timeout")
		w.awaitCalls(http.MethodGet, 3)
		if n := len(w.cloud.calls(false)); n != 0 {
			t.Errorf("state %s, calls %v", got.Status.State, w.cloud.calls(false))
		}
		w.cloud.faulty(nil)
		w.ready()
	})
	t.Run("D-32 an update whose answer is lost is observed, not repeated", func(t *testing.T) {
		w.cloud.faulty(always(http.MethodPut, answer{hang: true, effect: true}))
		w.resize(2)
		w.ready()
		if n := w.cloud.count(http.MethodPut); n != 1 {
			t.Errorf("%d updates, want 1", n)
		}
	})
}

func TestThrottled(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{})
	w.create()
	w.ready()
	w.cloud.faulty(always(http.MethodPut, answer{code: http.StatusTooManyRequests, after: "1"}))
	asked := time.Now()
	w.resize(2)
	t.Run("D-03 throttled is no failure, and Retry-After is kept", func(t *testing.T) {
		w.awaitCalls(http.MethodPut, 2)
		if took := time.Since(asked); took < 900*time.Millisecond {
			t.Errorf("asked again after %s", took)
		}
		if got := w.get("a"); is(got, "Failed", "True") {
			t.Errorf("conditions %+v", got.Status.Conditions)
		}
		w.cloud.faulty(nil)
		w.ready()
	})
}

// panicky is a driver with a bug.
type panicky struct{ things }

func (panicky) Compare(_ external.CompareRequest[*thing.Thing, item]) external.Changes {
	panic("nil map")
}

func TestPanic(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, panicky{})
	w.create()
	t.Run("a panic of the driver is a failure", func(t *testing.T) {
		got := w.failing("ObserveFailed")
		if !strings.Contains(condition(got, "Failed").Message, "the driver panicked in Compare: nil map") {
			t.Errorf("message %q", condition(got, "Failed").Message)
		}
	})
}

func TestManySlowCreates(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{}, func(o *options) { o.Loop.Workers = 1 })
	w.cloud.with(func() { w.cloud.slow = map[string]bool{http.MethodPost: true} })
	const n = 40
	for i := range n {
		w.createAs("many-" + string(rune('a'+i/26)) + string(rune('a'+i%26)))
	}
	t.Run("creates that take long hold up no worker", func(t *testing.T) {
		w.awaitCalls(http.MethodPost, n)
		if got := w.cloud.count(http.MethodPost); got != n {
			t.Errorf("%d creates, want %d", got, n)
		}
	})
}

// TestEvents counts what is reported again and again.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{})
	w.cloud.faulty(always(http.MethodPost, answer{code: http.StatusInternalServerError, body: "out of order"}))
	w.create()
	w.awaitEvent("CreateFailed")
	t.Run("one event for ten failures", func(t *testing.T) {
		w.awaitCalls(http.MethodPost, 10)
		n := 0
		for _, e := range w.events() {
			if strings.Contains(e, "CreateFailed") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d events, want 1: %v", n, w.events())
		}
	})
}
