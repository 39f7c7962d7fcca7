package loop_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/loop"
)

// TestOutcomes: what an outcome prints is how it is made.
func TestOutcomes(t *testing.T) {
	away := errors.New("no route to host")
	tests := map[string]struct {
		outcome fmt.Stringer
		err     error
	}{
		"Done()":               {loop.Done(), nil},
		"Again()":              {loop.Again(), nil},
		"AgainAfter(1s)":       {loop.AgainAfter(time.Second), nil},
		"After(5m0s)":          {loop.After(5 * time.Minute), nil},
		"Done().LowPriority()": {loop.Done().LowPriority(), nil},
		"WaitFor(NoQueue, Queue n/q: it does not exist)": {loop.WaitFor("NoQueue", loop.Dep{Kind: "Queue", Namespace: "n", Name: "q", Why: "does not exist"}), nil},
		"Fail(no route to host)":                         {loop.Fail(away), away},
		"Fail(no route to host).Because(Unreachable)":    {loop.Fail(away).Because("Unreachable"), away},
		"FailAfter(no route to host, 3s)":                {loop.FailAfter(away, 3*time.Second), away},
		"Terminal(Unreachable, no route to host)":        {loop.Terminal("Unreachable", away), away},
		"CleanedUp()":                     {loop.CleanedUp(), nil},
		"Keep(2s)":                        {loop.Keep(2 * time.Second), nil},
		"KeepUntilEvent().Because(Busy)":  {loop.KeepUntilEvent().Because("Busy"), nil},
		"CleanupFailed(no route to host)": {loop.CleanupFailed(away), away},
		"RetryError()":                    {loop.RetryError(), nil},
		"NoRetry().WithoutStatus()":       {loop.NoRetry().WithoutStatus(), nil},
		"RetryIn(1m0s)":                   {loop.RetryIn(time.Minute), nil},
	}
	for want, test := range tests {
		if got := test.outcome.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if o, ok := test.outcome.(interface{ Err() error }); ok && !errors.Is(o.Err(), test.err) {
			t.Errorf("%s: error %v, want %v", want, o.Err(), test.err)
		}
	}
}
