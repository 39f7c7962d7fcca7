package loop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/loop"
)

// TestRateLimit: events that come faster than the limit cause passes at its rate, and the last one sees the newest.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	const passes, per = 2, 2 * time.Second
	a := newAuthor(nil)
	w := newControllerTest(t, a, options{RateLimit: loop.RateLimit{Passes: passes, Per: per}})
	w.create("a")
	var newest int64
	for size := range 20 {
		newest = w.resize(size + 1).Generation
	}
	calls := []call{w.next(a)}
	for calls[len(calls)-1].Generation != newest {
		calls = append(calls, w.next(a))
	}
	if len(calls) <= passes {
		w.resize(30)
		calls = append(calls, w.next(a))
	}
	for i := range calls[passes:] { // a call begins a moment after its pass
		if apart := calls[i+passes].At.Sub(calls[i].At); apart < per/2 {
			t.Errorf("calls %d and %d began %s apart; %d are allowed within %s", i, i+passes, apart, passes, per)
		}
	}
	w.create("b") // another object has a limit of its own
	for w.next(a).Name != "b" {
	}
	w.delete()
	w.gone()

	for _, l := range []loop.RateLimit{{Passes: -1}, {Passes: 1}, {Per: time.Second}} {
		if _, err := loop.New(newAuthor(nil), options{RateLimit: l}).Needs(scheme(t)); err == nil || !strings.Contains(err.Error(), "set both") {
			t.Errorf("limit %+v: %v, want an error that says what to set", l, err)
		}
	}
}
