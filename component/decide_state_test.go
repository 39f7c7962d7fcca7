package component

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// start is when the work of a situation began.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant

// at is a situation after some time of work, with the default intervals.
func at(after time.Duration, s situation) situation {
	s.Since, s.Now = start, start.Add(after)
	s.Timeout, s.Retry, s.Requeue, s.Spread = 5*time.Minute, 3*time.Minute, 10*time.Minute, 20*time.Second
	return s
}

// TestConclude: each situation has a state and a reason, and a time at which the component comes again.
func TestConclude(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why  string
		have situation
		want conclusion
	}{
		"invalid": {
			"no retry can help before the component is changed",
			at(0, situation{Invalid: true, Suspended: true, Failure: "no"}),
			conclusion{State: StateError, Reason: "Error", Message: "no", Ready: metav1.ConditionFalse, Warning: true, Stalled: true, Next: nextEvent},
		},
		"suspended": {
			"the user said so, which goes before whatever else is wrong",
			at(time.Hour, situation{Suspended: true, Missing: "Secret a/b"}),
			conclusion{State: StatePending, Reason: "Suspended", Message: "suspended: the dependents are left as they are", Ready: metav1.ConditionUnknown, Reconciling: true, Next: nextAgain, After: 10 * time.Minute},
		},
		"retriable": {
			"the author knows when to try again",
			at(time.Second, situation{Failure: "no", Retriable: true, RetryAfter: 7 * time.Second}),
			conclusion{State: StatePending, Reason: "Retrying", Message: "no; retrying", Ready: metav1.ConditionUnknown, Warning: true, Reconciling: true, Next: nextAgain, After: 7 * time.Second},
		},
		"retriable too long": {
			"the reason says that it takes too long; it is still retried",
			at(5*time.Minute, situation{Failure: "no", Retriable: true, RetryAfter: 7 * time.Second}),
			conclusion{State: StatePending, Reason: "Timeout", Message: "no; retrying", Ready: metav1.ConditionUnknown, Warning: true, Reconciling: true, Next: nextAgain, After: 7 * time.Second},
		},
		"failed": {
			"a plain error is retried with growing delays",
			at(time.Hour, situation{Failure: "no", Recorded: true}),
			conclusion{State: StateError, Reason: "Error", Message: "no; retrying", Ready: metav1.ConditionFalse, Warning: true, Reconciling: true, Next: nextBackoff},
		},
		"invalid manifests": {
			"nothing is tried before something changes, but for a look once in a while",
			at(time.Hour, situation{Failure: "no", Skipped: "; skipped because of that: b", Stalled: true, Again: time.Minute}),
			conclusion{State: StateError, Reason: "Error", Message: "no; skipped because of that: b", Ready: metav1.ConditionFalse, Warning: true, Stalled: true, Next: nextAgain, After: time.Minute},
		},
		"missing": {
			"a reference is waited for; the watch wakes the component earlier",
			at(time.Second, situation{Missing: "Secret a/b: it does not exist"}),
			conclusion{State: StatePending, Reason: "Retrying", Message: "waiting for Secret a/b: it does not exist", Ready: metav1.ConditionUnknown, Warning: true, Reconciling: true, Next: nextAgain, After: 3 * time.Minute},
		},
		"first": {
			"the inventory is written before anything is created",
			at(0, situation{First: true, Recorded: true}),
			conclusion{State: StatePending, Reason: "FirstSeen", Message: "the dependents are recorded; they are created next", Ready: metav1.ConditionUnknown, Reconciling: true, Next: nextAgain, After: time.Millisecond},
		},
		"restarting": {
			"the same for dependents that are new in a component that exists",
			at(0, situation{Recorded: true}),
			conclusion{State: StateProcessing, Reason: "Restarting", Message: "the dependents changed; they are applied next", Ready: metav1.ConditionUnknown, Reconciling: true, Next: nextAgain, After: time.Millisecond},
		},
		"ready": {
			"the next pass comes after the interval and a share of it, even if it took too long",
			at(time.Hour, situation{Ready: true, Dependents: 2}),
			conclusion{State: StateReady, Reason: "Ready", Message: "all 2 dependents are applied and ready", Ready: metav1.ConditionTrue, Next: nextSuccess, After: 10*time.Minute + 20*time.Second},
		},
		"processing": {
			"the next pass comes when the timeout expires, if no event comes earlier",
			at(time.Minute, situation{Waiting: "waiting for a"}),
			conclusion{State: StateProcessing, Reason: "Processing", Message: "waiting for a", Ready: metav1.ConditionUnknown, Reconciling: true, Next: nextAgain, After: 4 * time.Minute},
		},
		"processing, to be looked at": {
			"something asked for a pass earlier than that",
			at(time.Minute, situation{Waiting: "waiting for a", Again: time.Second}),
			conclusion{State: StateProcessing, Reason: "Processing", Message: "waiting for a", Ready: metav1.ConditionUnknown, Reconciling: true, Next: nextAgain, After: time.Second},
		},
		"just before the timeout": {
			"one nanosecond before it is not over",
			at(5*time.Minute-1, situation{Waiting: "waiting for a"}),
			conclusion{State: StateProcessing, Reason: "Processing", Message: "waiting for a", Ready: metav1.ConditionUnknown, Reconciling: true, Next: nextAgain, After: time.Millisecond},
		},
		"timeout": {
			"exactly at the timeout it is over",
			at(5*time.Minute, situation{Waiting: "waiting for a"}),
			conclusion{State: StateError, Reason: "Timeout", Message: "not ready after 5m0s: waiting for a", Ready: metav1.ConditionFalse, Warning: true, Reconciling: true, Next: nextAgain, After: 10 * time.Minute},
		},
		"blocked prune": {
			"nothing takes too long: somebody has to allow it",
			at(time.Hour, situation{Waiting: "5 of 5 are kept", Reason: "PruneBlocked"}),
			conclusion{State: StateProcessing, Reason: "PruneBlocked", Message: "5 of 5 are kept", Ready: metav1.ConditionUnknown, Reconciling: true, Next: nextAgain, After: 10 * time.Minute},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, conclude(test.have)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, diff)
			}
		})
	}
}

// TestConcludeDeletion: the same for components that are being deleted.
func TestConcludeDeletion(t *testing.T) {
	t.Parallel()
	unknown := metav1.ConditionUnknown
	tests := map[string]struct {
		why  string
		have situation
		want conclusion
	}{
		"blocked": {
			"nothing is deleted, and the message names what is in the way",
			at(0, situation{Blocked: "others"}),
			conclusion{State: StateDeleting, Reason: "DeletionBlocked", Message: "others", Ready: unknown, Warning: true, Reconciling: true, Next: nextAgain, After: time.Second},
		},
		"retriable": {
			"the author knows when to try again",
			at(0, situation{Failure: "no", Retriable: true, RetryAfter: time.Minute}),
			conclusion{State: StateDeletionPending, Reason: "DeletionRetrying", Message: "no; retrying", Ready: unknown, Warning: true, Reconciling: true, Next: nextAgain, After: time.Minute},
		},
		"failed": {
			"a failure after all are gone keeps the component",
			at(0, situation{Failure: "no", Ready: true}),
			conclusion{State: StateError, Reason: "Error", Message: "no; retrying", Ready: metav1.ConditionFalse, Warning: true, Reconciling: true, Next: nextBackoff},
		},
		"processing": {
			"the watch wakes the component when dependents go",
			at(time.Hour, situation{Waiting: "waiting for a"}),
			conclusion{State: StateDeleting, Reason: "DeletionProcessing", Message: "waiting for a", Ready: unknown, Reconciling: true, Next: nextEvent},
		},
		"gone": {
			"only now the finalizer goes",
			at(0, situation{Ready: true}),
			conclusion{State: StateDeleting, Reason: "DeletionProcessing", Message: "all dependents are gone", Ready: unknown, Reconciling: true, Next: nextRelease},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, concludeDeletion(test.have)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, diff)
			}
		})
	}
}

// TestAdvance: the timer starts when there is work, and again when the component or its manifests change.
func TestAdvance(t *testing.T) {
	t.Parallel()
	later := start.Add(time.Minute)
	under := progress{Digest: "a", Generation: 1, Since: start}
	tests := map[string]struct {
		why        string
		have       progress
		digest     string
		generation int64
		ready      bool
		want       progress
		applied    bool
	}{
		"first":               {"there is work now", progress{}, "a", 1, false, progress{Digest: "a", Generation: 1, Since: later}, false},
		"the same":            {"a pass that finds nothing new does not restart the timer", under, "a", 1, false, under, false},
		"another generation":  {"the component changed: 004-55 a", under, "a", 2, false, progress{Digest: "a", Generation: 2, Since: later}, false},
		"other manifests":     {"something that is referred to changed: 004-55 b", under, "b", 1, false, progress{Digest: "b", Generation: 1, Since: later}, false},
		"not rendered":        {"nothing is known of the manifests", under, "", 2, false, under, false},
		"done":                {"the work ends", under, "a", 1, true, progress{Digest: "a", Generation: 1}, true},
		"done at once":        {"a change that is ready in the same pass", progress{Digest: "a", Generation: 1}, "b", 2, true, progress{Digest: "b", Generation: 2}, true},
		"still done":          {"a pass over a component that is ready applies nothing", progress{Digest: "a", Generation: 1}, "a", 1, true, progress{Digest: "a", Generation: 1}, false},
		"no longer ready":     {"a dependent fails: there is work again", progress{Digest: "a", Generation: 1}, "a", 1, false, progress{Digest: "a", Generation: 1, Since: later}, false},
		"nothing is rendered": {"and there was no work", progress{}, "", 1, false, progress{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, applied := advance(test.have, test.digest, test.generation, nil, test.ready, later)
			if diff := cmp.Diff(test.want, got); diff != "" || applied != test.applied {
				t.Errorf("%s: applied %t, want %t (-want +got):\n%s", test.why, applied, test.applied, diff)
			}
		})
	}
}

// TestRevise: a revision is what a component is rendered from; the first lasts until the component is ready.
func TestRevise(t *testing.T) {
	t.Parallel()
	ready := new(metav1.NewTime(start))
	for name, test := range map[string]struct {
		have Status
		want int64
	}{
		"new":                             {Status{}, 1},
		"the first, not ready":            {Status{Revision: 1, RevisionDigest: "a"}, 1},
		"another before one was ready":    {Status{Revision: 1, RevisionDigest: "b"}, 1},
		"the first":                       {Status{Revision: 1, RevisionDigest: "a", LastAppliedAt: ready}, 1},
		"another":                         {Status{Revision: 1, RevisionDigest: "b", LastAppliedAt: ready}, 2},
		"of a version that had no digest": {Status{Revision: 7, LastAppliedAt: ready}, 7},
	} {
		if got := revise(&test.have, "a"); got != test.want {
			t.Errorf("%s: revision %d, want %d", name, got, test.want)
		}
	}
}

// TestAdvanceWave: the timer of a wave starts when another wave is the first that is not ready, and again when
// the component or its manifests change.
func TestAdvanceWave(t *testing.T) {
	t.Parallel()
	now := start.Add(time.Minute)
	under := progress{Digest: "a", Generation: 1, Since: start, Wave: new(int16(-1)), WaveSince: start}
	for name, test := range map[string]struct {
		digest string
		wave   *int16
		want   time.Time
	}{
		"the same":        {"a", new(int16(-1)), start},
		"the next":        {"a", new(int16(0)), now},
		"other manifests": {"b", new(int16(-1)), now},
	} {
		if got, _ := advance(under, test.digest, 1, test.wave, false, now); !got.WaveSince.Equal(test.want) || *got.Wave != *test.wave {
			t.Errorf("%s: wave %d since %s, want %d since %s", name, *got.Wave, got.WaveSince, *test.wave, test.want)
		}
	}
	if got, _ := advance(under, "a", 1, nil, true, now); got.Wave != nil {
		t.Errorf("all are ready, but wave %d is not", *got.Wave)
	}
}

// TestLate: dependents, waves and the component are late on their own, and all that are late are named.
func TestLate(t *testing.T) {
	t.Parallel()
	late := func(at time.Duration, dependents string) situation {
		s := situation{Late: dependents, Waiting: "waiting for a", Wave: new(int16(3)), WaveSince: start, WaveTimeout: time.Minute, Requeue: time.Hour}
		s.Since, s.Now, s.Timeout = start, start.Add(at), 5*time.Minute
		return s
	}
	young := late(5*time.Minute, "")
	young.WaveSince = start.Add(4*time.Minute + 30*time.Second)
	for name, test := range map[string]struct {
		have  situation
		want  string
		after time.Duration
	}{
		"before its wave":       {young, "not ready after 5m0s: waiting for a", 30 * time.Second},
		"nothing":               {late(50*time.Second, ""), "", 10 * time.Second},
		"a dependent":           {late(50*time.Second, "Job a is not ready after 30s"), "Job a is not ready after 30s", 10 * time.Second},
		"the wave":              {late(time.Minute, ""), "wave 3 is not ready after 1m0s: waiting for a", 4 * time.Minute},
		"a dependent, its wave": {late(time.Minute, "Job a is not ready after 30s"), "Job a is not ready after 30s; wave 3 is not ready after 1m0s: waiting for a", 4 * time.Minute},
		"all":                   {late(5*time.Minute, "Job a is not ready after 30s"), "Job a is not ready after 30s; wave 3 is not ready after 1m0s; not ready after 5m0s: waiting for a", time.Hour},
	} {
		got := conclude(test.have)
		if test.want == "" {
			if got.State != StateProcessing || got.After != test.after {
				t.Errorf("%s: %s, next after %s, want Processing and %s", name, got.State, got.After, test.after)
			}
			continue
		}
		if got.Message != test.want || got.Reason != reasonTimeout || got.State != StateError || got.After != test.after {
			t.Errorf("%s: %s %s %q, next after %s, want Timeout %q and %s", name, got.State, got.Reason, got.Message, got.After, test.want, test.after)
		}
	}
}
