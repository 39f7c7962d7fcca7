package engine

import (
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// TestMemorize: only what the API returned of a usable resource that carries our mark is
// remembered, and only where reads are never behind writes.
func TestMemorize(t *testing.T) {
	ours := decide.Seen{Owner: decide.OwnerUs, Marked: true}
	tests := map[string]struct {
		why   string
		grace time.Duration
		from  decide.Source
		phase decide.Phase
		seen  decide.Seen
		want  bool
	}{
		"returned":            {"", -1, decide.SourceAnswer, decide.PhaseAvailable, ours, true},
		"read":                {"drivers that return nothing behave as before", -1, decide.SourceRead, decide.PhaseAvailable, ours, false},
		"reads may be behind": {"", 0, decide.SourceAnswer, decide.PhaseAvailable, ours, false},
		"not usable yet":      {"", -1, decide.SourceAnswer, decide.PhaseCreating, ours, false},
		"by the record alone": {"no mark proves it", -1, decide.SourceAnswer, decide.PhaseAvailable, decide.Seen{Owner: decide.OwnerRecorded, Marked: true}, false},
		"another incarnation": {"", -1, decide.SourceAnswer, decide.PhaseAvailable, decide.Seen{Owner: decide.OwnerUs}, false},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			p := visit()
			p.e.options.CreateGrace = test.grace
			p.facts.Seen = test.seen
			p.memorize(Observation{Phase: test.phase}, test.from)
			if _, known := p.e.memory.of(p.uid()); known != test.want {
				t.Errorf("%s: remembered %t", test.why, known)
			}
		})
	}
}

// TestMemoryEnds: what is remembered is forgotten when something else is observed, and after a
// moment, which is never longer than a call may take.
func TestMemoryEnds(t *testing.T) {
	p := visit()
	p.e.options.CreateGrace = -1
	p.facts.Seen = decide.Seen{Owner: decide.OwnerUs, Marked: true}
	p.memorize(Observation{Phase: decide.PhaseAvailable}, decide.SourceAnswer)
	p.memorize(Observation{Phase: decide.PhaseFailed}, decide.SourceRead)
	if _, known := p.e.memory.of(p.uid()); known {
		t.Error("it is remembered as it no longer is")
	}
	var m memory
	start := time.Now()
	m.put("a", memorized{at: start}, time.Minute)
	m.put("b", memorized{at: start.Add(time.Minute)}, time.Minute)
	if _, known := m.of("a"); known || len(m.byUID) != 1 {
		t.Errorf("%d are remembered, want the one of this minute", len(m.byUID))
	}
	for deadline, want := range map[time.Duration]time.Duration{0: moment, 2 * time.Second: 2 * time.Second, time.Hour: moment} {
		p.e.options.CallDeadline = deadline
		if got := p.e.moment(); got != want {
			t.Errorf("with a call deadline of %s a moment is %s, want %s", deadline, got, want)
		}
	}
}

// TestReturned: a response that cannot be used is told from one that says nothing.
func TestReturned(t *testing.T) {
	compare := func(_ Object, o Observation) (state, error) { return state{Observation: o}, nil }
	if got := returned(compare, nil, nil); got.state != nil || got.flaw != nil {
		t.Errorf("nothing returned: %+v", got)
	}
	if got := returned(compare, nil, &Observation{Phase: decide.PhaseMissing}); got.state != nil || got.flaw == nil {
		t.Errorf("what was made is missing: %+v", got)
	}
	if got := returned(compare, nil, &Observation{Phase: decide.PhaseAvailable}); got.state == nil || got.flaw != nil {
		t.Errorf("what was made: %+v", got)
	}
}

// TestSinceDelete: how long ago the object was deleted, by which an object whose client is gone for good is let go, comes from the
// object itself, so that it outlives the process.
func TestSinceDelete(t *testing.T) {
	p := visit()
	if p.gatherReport(); p.facts.Deleting || p.facts.SinceDelete != 0 {
		t.Errorf("deleting %t, %s ago, want an object that is not", p.facts.Deleting, p.facts.SinceDelete)
	}
	p.obj.SetDeletionTimestamp(&metav1.Time{Time: time.Now().Add(-time.Hour)})
	if p.gatherReport(); !p.facts.Deleting || p.facts.SinceDelete < time.Hour {
		t.Errorf("deleting %t, %s ago, want an hour or more", p.facts.Deleting, p.facts.SinceDelete)
	}
}

// TestCreatedBefore: a resource that is found as ours, and was not adopted, was created by a process that was killed before it
// said so.
func TestCreatedBefore(t *testing.T) {
	for creation, want := range map[decide.Creation]bool{
		decide.CreationNone: false, decide.CreationRefused: false, decide.CreationUnrecorded: false,
		decide.CreationPossible: true, decide.CreationSettled: true, decide.CreationCalled: true,
		decide.CreationSeen: false, // adopted, or reported before
	} {
		x := &track{creation: creation}
		if x.saw(1, decide.SourceRead); x.occurred.Creating != want {
			t.Errorf("%d: %+v", creation, x.occurred)
		}
	}
}

// TestOperationOccurred: an operation that an earlier process began, and that has ended, has happened.
func TestOperationOccurred(t *testing.T) {
	for call, want := range map[record.Call]decide.Occurred{
		record.CallCreate: {Creating: true}, record.CallUpdate: {Updating: true}, record.CallDelete: {},
	} {
		p := visit()
		if p.ended(record.Operation{ID: "op-1", Call: call}, nil); p.track.occurred != want {
			t.Errorf("%s: %+v", call, p.track.occurred)
		}
	}
}
