package external

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

func TestErrors(t *testing.T) {
	cause := errors.New("x")
	for class, err := range map[Class]error{
		ClassThrottled: Throttled(cause, time.Minute), ClassDenied: Denied(cause), ClassInvalid: Invalid(cause), ClassConflict: Conflict(cause),
		ClassTransient: Transient(cause), ClassTerminal: Terminal(cause), ClassNotReady: NotReady(cause, time.Minute), ClassAmbiguous: Ambiguous(cause),
	} {
		got, after, said := declared(fmt.Errorf("create: %w", err))
		if !said || got.String() != class.String() || (after == time.Minute) != (class == ClassThrottled || class == ClassNotReady) {
			t.Errorf("%s is declared as %s after %s, %t", class, got, after, said)
		}
		if !errors.Is(err, cause) {
			t.Errorf("%s does not wrap its cause", class)
		}
	}
	if got, _, said := declared(cause); said || got != decide.ClassUnknown {
		t.Errorf("an ordinary error is declared as %s", got)
	}
	if got := Invalid(errors.New("too large"), "spec.replicas", "spec.size").Error(); got != "spec.replicas, spec.size: too large" {
		t.Errorf("text %q", got)
	}
	for _, e := range []error{Throttled(nil, 0), Denied(nil), Invalid(nil), Conflict(nil), Transient(nil), Terminal(nil), NotReady(nil, 0), Ambiguous(nil)} {
		if e != nil {
			t.Errorf("%v out of no error", e)
		}
	}
}
