package engine

import (
	"maps"
	"slices"
	"testing"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

// with returns a mutant that decides on other facts, or whose decisions are changed.
func with(facts func(*decide.Facts), bend func(decide.Facts, *decide.Decision)) mutant {
	return mutant{decide: func(f decide.Facts) decide.Decision {
		seen := f
		if facts != nil {
			facts(&seen)
		}
		d := decide.Next(seen)
		if bend != nil {
			bend(f, &d)
		}
		return d
	}}
}

// TestModelTeeth breaks the engine on purpose. If a walk did not find that, it would prove nothing
// about the real engine.
func TestModelTeeth(t *testing.T) {
	if walked < 1 {
		t.Skip("a short walk does not find every mutant; run it without -race")
	}
	tests := map[string]struct {
		why string
		api string // the only kind of API that shows it; empty means any
		m   mutant
		// round is the walk to begin with: the first that shows it, where that comes late.
		round uint64
	}{
		"finalizer goes on a failed delete": {
			why: "what could not be deleted leaks",
			m: with(nil, func(f decide.Facts, d *decide.Decision) {
				if d.Row == 31 && f.Last.Of == decide.ActionDelete {
					d.Action = decide.ActionRemoveFinalizer
				}
			}),
		},
		"finalizer goes while the id is unknown": {
			why: "what was created and not recorded leaks",
			api: "token",
			m: with(nil, func(_ decide.Facts, d *decide.Decision) {
				if d.Row == 28 {
					d.Action = decide.ActionRemoveFinalizer
				}
			}),
		},
		"create without marker": {
			why: "a crash between create and record forgets the thing",
			m: with(nil, func(_ decide.Facts, d *decide.Decision) {
				if d.Action == decide.ActionWriteMarker {
					d.Action = decide.ActionCreate
				}
			}),
		},
		"recreate without permission to create": {
			why: "the thing is destroyed and not made again",
			m:   with(func(f *decide.Facts) { f.Policy.Create = f.Policy.Create || f.Differs.Recreate }, nil),
		},
		"recreate without permission to delete": {
			why: "read-only deletes",
			m:   with(func(f *decide.Facts) { f.Policy.Delete = f.Policy.Delete || f.Differs.Recreate && !f.Deleting }, nil),
		},
		"trusts a stale Missing": {
			why: "a read behind the create removes the finalizer or creates again",
			m:   with(func(f *decide.Facts) { f.Grace = 0 }, nil),
		},
		"trusts any copy of the object": {
			why: "after a restart, a copy of an object that is gone creates again",
			m:   with(func(f *decide.Facts) { f.Fresh = true }, nil),
		},
		"believes that the first record is the first": {
			why:   "an object whose finalizer and record were taken off goes, and its thing stays",
			api:   "name and mark",
			m:     mutant{believesFirst: true},
			round: 5,
		},
		"believes everything is ours": {
			why: "somebody else's thing of the same name is changed",
			m:   mutant{ownsAll: true},
		},
		"does not wait before it creates again": {
			why: "an API that gives a name twice makes two things",
			api: "name given twice",
			m:   mutant{hasty: true},
		},
		"calls creates under old markers": {
			why: "the next process takes what is under way for settled",
			api: "name and mark",
			m:   mutant{oldMarkers: true},
		},
		"takes its own thing without a mark for somebody's": {
			why: "a crash between making and marking is for ever",
			api: "name, marked later",
			m: with(func(f *decide.Facts) {
				if f.MarkLater && f.Seen.Owner == decide.OwnerRecorded {
					f.Seen.Owner = decide.OwnerNobody
				}
			}, nil),
		},
		"takes the mark of an earlier incarnation for this one's": {
			why: "what was made instead stays unmarked, and leaks",
			api: "name, marked later",
			m:   mutant{anyMark: true},
		},
		"does not put a record back": {
			why: "without marks, what was made for the object is nobody's",
			api: "name without mark",
			m:   mutant{forgetsRecords: true},
		},
		"records before it observes": {
			why: "what was there before is marked and taken",
			api: "name, marked later",
			m:   mutant{firstMarker: true},
		},
		"takes every record for old": {
			why: "what is under way lands after the finalizer went",
			m:   mutant{eager: true},
		},
		"takes a refused create for none": {
			why: "an API that says no and makes the thing leaks it",
			api: "name and lies",
			m:   mutant{believesNo: true},
		},
		"lets go what a refused create may have made": {
			why: "without marks it leaks as well",
			api: "name without mark and lies",
			m:   with(func(f *decide.Facts) { f.Record.Doubtful = false }, nil),
		},
		"records a refusal at once or never": {
			why:   "the next process takes what bears the name for its own",
			api:   "name without mark and lies",
			m:     mutant{forgetsRefusals: true},
			round: 35,
		},
		"takes a lost answer for a refusal": {
			why: "the create that was lost lands after the finalizer went, or twice",
			m:   mutant{noDoubt: true},
		},
		"forgets a create whose pass was lost": {
			why: "a panic between a create and what is noted of it lets the object go",
			m:   mutant{forgets: true},
		},
		"does not wait for a create that hangs": {
			why: "it takes effect after the finalizer went",
			m:   mutant{impatient: true},
		},
		"forgets that a create may still come": {
			why: "an accepted delete does not undo a create that is still under way",
			m:   mutant{doubtless: true},
		},
		"markers over a newer object": {
			why: "a stale marker undoes a recorded id",
			m:   mutant{unlockedMarker: true},
		},
		"trusts an observation that shows an earlier object's thing": {
			why: "nothing wakes it when that is over",
			m:   with(func(f *decide.Facts) { f.SinceMet = f.Grace }, nil),
		},
		"believes a delete that sees nothing": {
			why: "what was made a moment ago is left behind",
			m:   mutant{believesAbsence: true},
		},
		"believes what an API returns again and again": {
			why: "an API that only repeats what it was asked for is updated for ever",
			api: "name and mark, repeated",
			m:   mutant{believesAnswers: true},
		},
		"deletes what is said to be gone for ever": {
			why: "a driver whose Gone is wrong is asked to delete again and again",
			api: "name and mark, said to be gone",
			m:   with(func(f *decide.Facts) { f.FutileDeletes = 0 }, nil),
		},
		"does not observe after changes that do not last": {
			why: "changes that others undo are given up",
			api: "name and mark, remembered",
			m:   with(func(f *decide.Facts) { f.Unconfirmed = false }, nil),
		},
		"remembers for too long": {
			why:   "what a process saw is somebody else's by now",
			api:   "name and mark, remembered",
			m:     mutant{elephant: true},
			round: 4,
		},
		"pause does not hold": {
			why: "paused objects change",
			m:   with(func(f *decide.Facts) { f.Paused = decide.PauseNone }, nil),
		},
		"never gives up waiting": {
			why: "liveness: absence that is never believed is never repaired",
			m: with(nil, func(f decide.Facts, d *decide.Decision) {
				if d.Row == 14 {
					d.Action = decide.ActionNone
				}
			}),
		},
		"same incarnation after a search": {
			api: "mark",
			why: "a search that is behind shows what an earlier create of the incarnation had made",
			m: with(nil, func(f decide.Facts, d *decide.Decision) {
				if d.Action == decide.ActionWriteMarker && f.Identity == decide.IdentityMark && f.Uncertain() {
					d.Action, d.Incarnation = decide.ActionCreate, f.Record.Incarnation
				}
			}),
		},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			for i, v := range variants() {
				if test.api != "" && test.api != v.name {
					continue
				}
				const rounds = 40
				for n := range uint64(rounds) {
					round := (test.round + n) % rounds
					w := newModel(v, test.m, modelSeed+uint64(i)+100*round)
					if w.walk(200_000); w.broken != "" {
						t.Logf("%s, round %d, step %d: %s", v.name, round, w.steps, w.broken)
						return
					}
				}
			}
			t.Errorf("no walk noticed the mutant; %s", test.why)
		})
	}
}
