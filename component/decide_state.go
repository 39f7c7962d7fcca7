package component

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the condition Ready of components. They are those of component-operator-runtime.
const (
	reasonFirstSeen          = "FirstSeen"
	reasonSuspended          = "Suspended"
	reasonRestarting         = "Restarting"
	reasonProcessing         = "Processing"
	reasonReady              = "Ready"
	reasonRetrying           = "Retrying"
	reasonError              = "Error"
	reasonTimeout            = "Timeout"
	reasonPruneBlocked       = "PruneBlocked"
	reasonDeletionRetrying   = "DeletionRetrying"
	reasonDeletionBlocked    = "DeletionBlocked"
	reasonDeletionProcessing = "DeletionProcessing"

	// reasonSingleton is our own: see [Options.Singleton].
	reasonSingleton = "Singleton"
)

// situation is what a pass found out about a component.
type situation struct {
	// First: no pass has reported on the component before.
	First bool
	// Invalid: the component cannot be worked on before it is changed, for the reason Failure.
	Invalid bool
	// Suspended: the component is to be left alone.
	Suspended bool
	// Failure is what went wrong, and Skipped continues its sentence: what is not done because of that.
	// Retriable failures come with their delay.
	Failure   string
	Skipped   string
	Retriable bool
	// Stalled: the API server called manifests invalid, and nothing else failed.
	Stalled    bool
	RetryAfter time.Duration
	// Recorded: dependents were added to the inventory, and are applied in the next pass.
	Recorded bool
	// Ready: all dependents are applied and ready; or, of a deletion, gone. There are so many.
	Ready      bool
	Dependents int
	// Broken says which dependents will not become ready by themselves, and why.
	Broken string
	// Waiting says what is not ready, and Reason why if it is not that it takes its time. Again is when to look at it without an event, if not zero.
	Waiting string
	Reason  string
	Again   time.Duration
	// Missing says which references cannot be resolved.
	Missing string
	// Blocked says what a deletion has to wait for before anything is deleted.
	Blocked string
	// Drifted and Contended say which dependents others changed that are left so, and which are changed
	// again and again.
	Drifted, Contended string
	// PruneBlocked says which dependents are kept because too many left the manifests.
	PruneBlocked string

	// Since is when the work on the present manifests began, zero if there is none; Now is after it.
	Since, Now time.Time
	// Late says which dependents have not become ready in the time that they had. Wave is the first wave that
	// is not ready, since WaveSince; nil if all are, or if waves have no timeout.
	Late        string
	Wave        *int16
	WaveSince   time.Time
	WaveTimeout time.Duration
	// Timeout, Retry and Requeue are intervals; Spread is how much later than Requeue the next pass
	// comes.
	Timeout, Retry, Requeue, Spread time.Duration
}

// conclusion is what the status says of a situation, and what comes next.
type conclusion struct {
	State, Reason, Message string
	Ready                  metav1.ConditionStatus
	// Warning: the event is one. Reconciling and Stalled are the conditions.
	Warning, Reconciling, Stalled bool
	// Drifted, Contended and PruneBlocked are those of the situation.
	Drifted, Contended, PruneBlocked string
	// Next is what comes next, After when.
	Next  next
	After time.Duration
}

// next is what comes after a pass.
type next int

const (
	// nextSuccess is a pass after an interval that nobody waits for.
	nextSuccess next = iota
	// nextAgain is a pass after a delay.
	nextAgain
	// nextBackoff is a pass after a delay that grows.
	nextBackoff
	// nextEvent is a pass when something changes.
	nextEvent
	// nextRelease is the end: the finalizer goes.
	nextRelease
)

// soon is when a pass follows one that only recorded.
const soon = time.Millisecond

// blockedInterval is how often a blocked deletion is looked at.
const blockedInterval = time.Second

// conclude decides on a component that is not being deleted. The first case that applies counts.
func conclude(s situation) conclusion {
	switch {
	case s.Invalid:
		return conclusion{State: StateError, Reason: reasonError, Message: s.Failure, Ready: metav1.ConditionFalse, Warning: true, Stalled: true, Next: nextEvent}
	case s.Suspended:
		return pending(reasonSuspended, "suspended: the dependents are left as they are", s.Requeue)
	case s.Failure != "" && s.Retriable:
		c := pending(reasonRetrying, s.failure(), s.RetryAfter)
		return s.overdue(c)
	case s.Failure != "" && s.Stalled:
		return conclusion{
			State: StateError, Reason: reasonError, Message: s.Failure + s.Skipped, Ready: metav1.ConditionFalse, Warning: true, Stalled: true,
			Next: nextAgain, After: s.again(s.Requeue),
		}
	case s.Failure != "":
		return conclusion{State: StateError, Reason: reasonError, Message: s.failure(), Ready: metav1.ConditionFalse, Warning: true, Reconciling: true, Next: nextBackoff}
	case s.Missing != "":
		return s.overdue(pending(reasonRetrying, "waiting for "+s.Missing, s.Retry))
	case s.Recorded && s.First:
		return pending(reasonFirstSeen, "the dependents are recorded; they are created next", soon)
	case s.Recorded:
		return processing(reasonRestarting, "the dependents changed; they are applied next", soon)
	case s.Ready:
		return conclusion{
			State: StateReady, Reason: reasonReady, Message: readyMessage(s.Dependents), Ready: metav1.ConditionTrue,
			Next: nextSuccess, After: s.again(s.Requeue + s.Spread),
		}
	case s.Broken != "":
		return conclusion{
			State: StateError, Reason: reasonError, Message: s.Broken, Ready: metav1.ConditionFalse, Warning: true, Reconciling: true,
			Next: nextAgain, After: s.again(s.Requeue),
		}
	case s.Reason == reasonPruneBlocked: // somebody has to allow it, which takes as long as it takes
		return processing(s.Reason, s.Waiting, s.again(s.Requeue))
	}
	if late := s.late(); late != "" {
		return conclusion{
			State: StateError, Reason: reasonTimeout, Message: late,
			Ready: metav1.ConditionFalse, Warning: true, Reconciling: true, Next: nextAgain, After: s.again(s.untilTimeout()),
		}
	}
	return processing(cmp.Or(s.Reason, reasonProcessing), s.Waiting, s.again(s.untilTimeout()))
}

// concludeDeletion decides on a component that is being deleted. The first case that applies counts.
func concludeDeletion(s situation) conclusion {
	switch {
	case s.Blocked != "":
		return conclusion{
			State: StateDeleting, Reason: reasonDeletionBlocked, Message: s.Blocked, Ready: metav1.ConditionUnknown,
			Warning: true, Reconciling: true, Next: nextAgain, After: cmp.Or(s.Again, blockedInterval),
		}
	case s.Failure != "" && s.Retriable:
		return conclusion{
			State: StateDeletionPending, Reason: reasonDeletionRetrying, Message: s.failure(), Ready: metav1.ConditionUnknown,
			Warning: true, Reconciling: true, Next: nextAgain, After: s.RetryAfter,
		}
	case s.Failure != "":
		return conclusion{State: StateError, Reason: reasonError, Message: s.failure(), Ready: metav1.ConditionFalse, Warning: true, Reconciling: true, Next: nextBackoff}
	case s.Ready:
		return conclusion{
			State: StateDeleting, Reason: reasonDeletionProcessing, Message: "all dependents are gone", Ready: metav1.ConditionUnknown,
			Reconciling: true, Next: nextRelease,
		}
	case s.Late != "": // a delete hook
		return conclusion{
			State: StateDeleting, Reason: reasonTimeout, Message: s.Late, Ready: metav1.ConditionUnknown,
			Warning: true, Reconciling: true, Next: nextEvent, After: s.Again,
		}
	}
	return conclusion{
		State: StateDeleting, Reason: cmp.Or(s.Reason, reasonDeletionProcessing), Message: s.Waiting, Ready: metav1.ConditionUnknown, Reconciling: true,
		Next: nextEvent, After: s.Again,
	}
}

func pending(reason, message string, after time.Duration) conclusion {
	return conclusion{State: StatePending, Reason: reason, Message: message, Ready: metav1.ConditionUnknown, Reconciling: true, Next: nextAgain, After: after}
}

func processing(reason, message string, after time.Duration) conclusion {
	return conclusion{State: StateProcessing, Reason: reason, Message: message, Ready: metav1.ConditionUnknown, Reconciling: true, Next: nextAgain, After: after}
}

// failure says what went wrong and what comes next.
func (s situation) failure() string { return s.Failure + s.Skipped + "; retrying" }

// overdue gives a conclusion the reason Timeout if the work has taken too long.
func (s situation) overdue(c conclusion) conclusion {
	if c.Warning = true; s.timedOut() {
		c.Reason = reasonTimeout
	}
	return c
}

// timedOut reports whether the work has taken as long as it may.
func (s situation) timedOut() bool { return !s.Since.IsZero() && s.Now.Sub(s.Since) >= s.Timeout }

// waveTimedOut reports whether the first wave that is not ready has taken as long as it may.
func (s situation) waveTimedOut() bool {
	return s.Wave != nil && s.WaveTimeout > 0 && s.Now.Sub(s.WaveSince) >= s.WaveTimeout
}

// late says what has taken as long as it may: dependents, their wave, and the component. Empty means nothing.
func (s situation) late() string {
	var texts []string
	if s.Late != "" {
		texts = append(texts, s.Late)
	}
	if s.waveTimedOut() {
		texts = append(texts, fmt.Sprintf("wave %d is not ready after %s", *s.Wave, s.WaveTimeout))
	}
	if s.timedOut() {
		texts = append(texts, fmt.Sprintf("not ready after %s", s.Timeout))
	}
	text := strings.Join(texts, "; ")
	if text != "" && s.Waiting != "" && (s.Late == "" || len(texts) > 1) {
		text += ": " + s.Waiting
	}
	return text
}

// untilTimeout is how long the work, or its wave, may still take; if both have taken as long as they may, it is the time until
// a pass that looks at everything again.
func (s situation) untilTimeout() time.Duration {
	left := s.Timeout
	switch {
	case s.timedOut():
		left = s.Requeue
	case !s.Since.IsZero():
		left = max(s.Timeout-s.Now.Sub(s.Since), soon)
	}
	if s.Wave != nil && s.WaveTimeout > 0 && !s.waveTimedOut() {
		left = min(left, s.WaveTimeout-s.Now.Sub(s.WaveSince))
	}
	return left
}

// again is when to look again: after limit, or earlier if something asked for that.
func (s situation) again(limit time.Duration) time.Duration {
	if s.Again > 0 {
		return min(s.Again, limit)
	}
	return limit
}

func readyMessage(dependents int) string {
	if dependents == 0 {
		return "the component has no dependents"
	}
	return fmt.Sprintf("all %d dependents are applied and ready", dependents)
}

// progress is what the status records of the work on the manifests of a component.
type progress struct {
	// Digest identifies the manifests, Generation is the component's. Without a digest nothing is known.
	Digest     string
	Generation int64
	// Since is when the work began; zero means that there is none.
	Since time.Time
	// Wave is the wave that is not ready, since WaveSince. Nil means that there is none.
	Wave      *int16
	WaveSince time.Time
}

// revise returns the revision of a component whose spec and what else it is rendered from are identified by digest.
// What replaces a revision that was never ready is the first one, too.
func revise(s *Status, digest string) (revision int64) {
	switch {
	case s.Revision == 0 || s.LastAppliedAt == nil:
		return 1
	case s.RevisionDigest != "" && s.RevisionDigest != digest:
		return s.Revision + 1
	}
	return s.Revision
}

// advance returns the progress after a pass that wants the manifests digest and in which a wave was not ready, and whether all dependents
// were applied for the first time since the work began. The timer starts again if the component or the
// manifests changed.
func advance(p progress, digest string, generation int64, wave *int16, ready bool, now time.Time) (after progress, applied bool) {
	changed := digest != "" && (digest != p.Digest || generation != p.Generation)
	if changed {
		p.Digest, p.Generation = digest, generation
	}
	if wave == nil || p.Wave == nil || *wave != *p.Wave || changed {
		p.Wave, p.WaveSince = wave, now
	}
	if wave == nil {
		p.WaveSince = time.Time{}
	}
	working := !p.Since.IsZero()
	switch {
	case ready:
		p.Since = time.Time{}
		return p, working || changed
	case changed, digest != "" && !working:
		p.Since = now
	}
	return p, false
}
