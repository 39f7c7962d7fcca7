package fault

import (
	"slices"
	"strings"
	"testing"
	"time"
)

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
