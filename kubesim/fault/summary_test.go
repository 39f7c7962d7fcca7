package fault

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/judge"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// TestSummary proves that a report is one line with all figures, and one for each note.
func TestSummary(t *testing.T) {
	t.Parallel()
	of := func(invariant Invariant, s schedule.Schedule) Finding {
		return Finding{Violations: []Violation{{Invariant: invariant}}, found: judge.Finding{Job: run.Job{Schedule: s}}}
	}
	crash := schedule.Schedule{{Kind: schedule.CrashAfter}}
	tests := map[string]struct {
		why  string
		r    Report
		want string
	}{
		"all": {
			"one line with all figures",
			Report{
				Writes: 14, Calls: 61, Took: 3120 * time.Millisecond, Schedules: map[Kind]int{Crashes: 28, Faults: 190, Stale: 0, Races: 9},
				Pruned: map[Rule]int{SameInstant: 4, NoEffect: 8, NothingHeld: 0},
			},
			"x: 14 writes, 61 calls; 227 schedules in 3.1 s: 28 crashes, 190 faults, 9 races; pruned 12",
		},
		"nothing":  {"singular, and no pruning", Report{Writes: 1, Calls: 1}, "x: 1 write, 1 call; no schedule"},
		"findings": {"they are counted", Report{Findings: []Finding{of(I1, crash), of(I2, crash)}, Schedules: map[Kind]int{Crashes: 3}}, "x: 0 writes, 0 calls; 3 schedules in 0.0 s: 3 crashes; 2 findings"},
		"early": {
			"the kinds add up to all that was played",
			Report{early: 2, Schedules: map[Kind]int{Crashes: 3, Races: 4}, Pruned: map[Rule]int{TooEarly: 2}},
			"x: 0 writes, 0 calls; 9 schedules in 0.0 s: 3 crashes, 4 races, 2 too early to say anything",
		},
		"replay": {
			"what one schedule came to, instead of figures that say nothing of it",
			Report{Findings: []Finding{of(I3, crash), of(I1, crash), of(I1, crash)}, Pruned: map[Rule]int{TooEarly: 2}, replay: &replayed{schedule: "race@8(1)"}, Notes: []string{"one"}},
			"x: replayed race@8(1): broke I1, I3\nnote: one",
		},
		"replay that holds": {"it is said", Report{replay: &replayed{schedule: "race@8(1)"}}, "x: replayed race@8(1): every invariant held"},
		"replay of nothing": {"the undisturbed run has no schedule", Report{Findings: []Finding{of(I5, nil)}, replay: &replayed{}}, "x: replayed the undisturbed run: broke I5"},
		"replay too early": {
			"it is not taken for one that holds",
			Report{replay: &replayed{schedule: "race@1(0)", early: true}},
			"x: replayed race@1(0): says nothing, the user came too early or nobody could notice it",
		},
		"notes": {
			"each is on a line of its own",
			Report{Masked: []string{"a"}, Notes: []string{"one thing", "another thing that goes on for so long that it does not fit into a line of a hundred columns or so"}},
			"x: 0 writes, 0 calls; no schedule\nnot compared, as two undisturbed runs differ there (random numbers?): a\nnote: one thing\n" +
				"note: another thing that goes on for so long that it does not fit into a line of a hundred columns\n  or so",
		},
		"masked": {
			"authors learn of hidden nondeterminism",
			Report{Masked: []string{"secrets default/a data.password"}},
			"x: 0 writes, 0 calls; no schedule\nnot compared, as two undisturbed runs differ there (random numbers?): secrets default/a\n  data.password",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.r.Scenario = "x"
			if diff := cmp.Diff(tt.want, tt.r.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

// TestReplaySummary proves that the summary of a replay says what was played and what it broke, and nothing of runs that it is
// compared with.
func TestReplaySummary(t *testing.T) {
	s := toyLife("finalizer first")
	r := Explore(t, s, Only(Crashes, Races))
	if len(r.Findings) == 0 {
		t.Fatal("nothing was found")
	}
	before := *replayFlag
	defer func() { *replayFlag = before }()
	for token, want := range map[string]string{
		r.Findings[0].Token:    "toy: replayed " + strings.TrimPrefix(r.Findings[0].Token, "v1/toy/") + ": broke " + ids(r.Findings[0]),
		"v1/toy/":              "toy: replayed the undisturbed run: every invariant held",
		"v1/toy/crash-after@1": "toy: replayed crash-after@1: every invariant held",
	} {
		*replayFlag = token
		if got, _, _ := strings.Cut(Explore(t, s).String(), "\n"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// ids are the invariants that a finding broke.
func ids(f Finding) string {
	var all []string
	for _, v := range f.Violations {
		all = append(all, string(v.Invariant))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// TestSum proves that the kinds in a summary add up to the number of schedules that was announced, those included in which a user
// comes too early.
func TestSum(t *testing.T) {
	s := toyLife("")
	e, err := newExploration(t, &s, options{kinds: []Kind{Crashes, Races, Delays}})
	if err != nil {
		t.Fatal(err)
	}
	defer quieten()()
	r, err := e.explore()
	if err != nil {
		t.Fatal(err)
	}
	sum := r.early
	for _, n := range r.Schedules {
		sum += n
	}
	if sum != e.clock.all || r.early == 0 || r.Pruned[TooEarly] < r.early {
		t.Errorf("%v and %d too early were played, %d of them left out, want %d in all, some of them too early", r.Schedules, r.early, r.Pruned[TooEarly], e.clock.all)
	}
}

// TestNothingToForge proves that a note says if no status can be forged, and that there is none if forgeries are not played.
func TestNothingToForge(t *testing.T) {
	for kind, want := range map[Kind]bool{Forgeries: true, Crashes: false} {
		r, err := explored(t, toyLife(""), time.Minute, kind)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(r.Notes, nothingToForge); got != want {
			t.Errorf("of %s, it is noted: %v, want %v", kind, got, want)
		}
	}
}
