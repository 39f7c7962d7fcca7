package component

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/spread"
	"github.com/trimtab-dev/trimtab/loop"
)

// report writes a conclusion into the status.
func (p *pass[T]) report(c conclusion) conclusion {
	if any(p.obj) != any(p.run.Obj) {
		copyStatus(p.run.Obj, p.obj)
	}
	r := conditions.Report{
		State: c.State, Reason: c.Reason, Message: c.Message, Known: c.Reason, Applied: c.State == StateReady,
		Conditions: []metav1.Condition{{Type: api.ConditionReady, Status: c.Ready, Reason: c.Reason, Message: c.Message}},
		Event:      conditions.Event{Warning: c.Warning, Reason: c.Reason, Note: c.Message},
	}
	for condition, is := range map[string]bool{api.ConditionReconciling: c.Reconciling, api.ConditionStalled: c.Stalled} {
		if is {
			r.Conditions = append(r.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: c.Reason, Message: c.Message})
		}
	}
	for condition, about := range map[string]noted{
		api.ConditionDrifted: {"DetectOnly", c.Drifted}, api.ConditionContended: {"ChangedByOthers", c.Contended},
		api.ConditionPruneBlocked: {"TooMany", c.PruneBlocked},
	} {
		if about.message != "" {
			r.Conditions = append(r.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: about.reason, Message: about.message})
		}
	}
	if p.silent() {
		r.Event = conditions.Event{Warning: c.Warning} // without a reason none is recorded
	}
	p.tallies.set(p.options.Name, p.obj.GetUID(), p.items)
	p.run.Report(r)
	return p.observe(c)
}

// noted is what a condition says of dependents.
type noted struct{ reason, message string }

// observe keeps status.lastObservedAt at the pace that the options ask for. Otherwise the loop sets it with
// each change of the status.
func (p *pass[T]) observe(c conclusion) conclusion {
	every := p.options.LastObservedAtEvery
	if every == 0 || c.Next == nextBackoff || c.Next == nextRelease {
		return c
	}
	status := p.run.Obj.GetStatus()
	if last := status.LastObservedAt; last == nil || p.now.Sub(last.Time) >= every {
		status.LastObservedAt = new(metav1.NewTime(p.now.Truncate(time.Second)))
	}
	if c.After == 0 || c.After > every {
		c.After = every
	}
	if c.Next == nextEvent {
		c.Next = nextAgain
	}
	return c
}

// outcome returns the outcome of a pass for the loop.
func (c conclusion) outcome(err error) loop.Outcome {
	switch c.Next {
	case nextSuccess:
		return loop.After(c.After)
	case nextBackoff:
		return loop.Fail(err).Because(c.Reason)
	case nextEvent:
		return loop.Terminal(c.Reason, err)
	case nextAgain, nextRelease:
	}
	return loop.AgainAfter(max(c.After, soon))
}

// cleanupOutcome returns the outcome of a deletion for the loop.
func (c conclusion) cleanupOutcome(err error) loop.CleanupOutcome {
	switch c.Next {
	case nextRelease:
		return loop.CleanedUp()
	case nextBackoff:
		return loop.CleanupFailed(err).Because(c.Reason)
	case nextSuccess, nextAgain:
		return loop.Keep(max(c.After, soon))
	case nextEvent:
	}
	if c.After > 0 {
		return loop.Keep(c.After)
	}
	return loop.KeepUntilEvent()
}

// copyStatus gives an object the status of another of its kind.
func copyStatus[T Object](to, from T) {
	a, b := reflect.ValueOf(to), reflect.ValueOf(from)
	if a.Kind() == reflect.Pointer && a.Elem().Kind() == reflect.Struct {
		if status := a.Elem().FieldByName("Status"); status.IsValid() && status.CanSet() {
			status.Set(b.Elem().FieldByName("Status"))
			return
		}
	}
	*to.GetStatus() = *from.GetStatus()
}

// spreadOf spreads the passes over components that are ready: by one to five percent of their interval.
func spreadOf(key types.NamespacedName, interval time.Duration) time.Duration {
	return time.Duration(float64(interval) * (0.01 + 0.04*spread.Share(key, 0)))
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
