package fault

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
)

// TestBudget proves that an exploration ends when its time is over, says so, and can be gone on with: both
// parts together play each schedule once.
func TestBudget(t *testing.T) {
	s := toyLife("")
	s.Races = []Step{}
	played := func(r Report) (n int) {
		for _, of := range r.Schedules {
			n += of
		}
		return n
	}
	all := played(Explore(t, s, Only(Crashes, Faults)))
	r := Explore(t, s, Only(Crashes, Faults), Budget(time.Nanosecond))
	if played(r) != 0 || r.Unplayed != all || r.Pruned[OutOfTime] != all {
		t.Errorf("%d schedules of %d were played in no time, %d were not", played(r), all, r.Unplayed)
	}
	const note = " schedules were not played, the time was over; go on with -fault.resume='toy@0'"
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, note) }) {
		t.Errorf("the notes do not say how to go on: %q", r.Notes)
	}
	first := Explore(t, s, Only(Crashes, Faults), AtMost(10))
	if first.Schedules[Crashes] == 0 || played(first) != 10 {
		t.Errorf("%v were played, want 10, with crashes first", first.Schedules)
	}
	*resumeFlag = "toy@10"
	defer func() { *resumeFlag = "" }()
	if rest := Explore(t, s, Only(Crashes, Faults)); played(rest) != all-10 {
		t.Errorf("%d schedules were played from the tenth on, want %d", played(rest), all-10)
	}
	*resumeFlag = "another@10"
	if other := Explore(t, s, Only(Crashes, Faults)); played(other) != 0 || !strings.Contains(strings.Join(other.Notes, ""), `-fault.resume names scenario "another"`) {
		t.Errorf("another scenario was played: %v, %q", other.Schedules, other.Notes)
	}
	for token, want := range map[string]string{"toy@99999": "the scenario has", "toy": "SCENARIO@NUMBER", "toy@x": "SCENARIO@NUMBER"} {
		*resumeFlag = token
		if _, err := explored(t, s, time.Minute, Crashes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-fault.resume=%s gave %v, want %q", token, err, want)
		}
	}
	*resumeFlag = ""
	if _, err := newExploration(t, &s, options{budget: -1}); err == nil {
		t.Error("a negative time was taken")
	} else if _, ok := errors.AsType[sandbox.MisuseError](err); !ok {
		t.Errorf("%v is no misuse", err)
	}
}

// TestSeed proves that a seed determines a sample, that another one is another sample, and that all of them come from the same
// schedules, with pairs that depend on the seed.
func TestSeed(t *testing.T) {
	e, _ := prepared(t, toyLife(""))
	tokens := func(seed uint64, n int) (all []string) {
		e.options.seed, e.options.most, e.plan.Seed = seed, map[Kind]int{"": n}, seed
		jobs, err := e.sift(slices.Concat(e.plan.Crashes(), e.plan.Faults()))
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			all = append(all, j.Schedule.Token("toy"))
		}
		return all
	}
	first := tokens(1, 20)
	if again := tokens(1, 20); !slices.Equal(first, again) {
		t.Errorf("the same seed is another sample (-first +again):\n%s", cmp.Diff(first, again))
	}
	if another := tokens(2, 20); slices.Equal(slices.Sorted(slices.Values(first)), slices.Sorted(slices.Values(another))) {
		t.Error("another seed is the same sample")
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(tokens(0, 0))), slices.Sorted(slices.Values(tokens(3, 0)))); diff != "" {
		t.Errorf("a seed changes which schedules there are (-without +with):\n%s", diff)
	}
	pairs := func(seed uint64) (all []string) {
		e.plan.Seed = seed
		for _, j := range e.plan.Pairs(20) {
			all = append(all, j.Schedule.Token("toy"))
		}
		return all
	}
	if slices.Equal(pairs(1), pairs(2)) {
		t.Error("another seed has the same pairs")
	}
}

// TestAllowed proves that a scenario may take nearly all of the time, but leaves some for later ones.
func TestAllowed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		left  time.Duration
		later int
		want  time.Duration
	}{
		{10 * time.Minute, 0, 9 * time.Minute},
		{10 * time.Minute, 6, 7 * time.Minute},
		{10 * time.Minute, 600, 4*time.Minute + 30*time.Second},
		{80 * time.Second, 0, 70 * time.Second},
	} {
		if got := allowed(test.left, test.later); got != test.want {
			t.Errorf("of %v, with %d scenarios to come, %v are allowed, want %v", test.left, test.later, got, test.want)
		}
	}
}

// TestClock proves that nothing is played in the last seconds before the test's deadline, whatever the budget.
func TestClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, test := range []struct{ left, budget, until, last time.Duration }{
		{10 * time.Minute, 0, 9 * time.Minute, 9*time.Minute + 30*time.Second},
		{80 * time.Second, 0, 70 * time.Second, 75 * time.Second},
		{8 * time.Second, 0, 3 * time.Second, 3 * time.Second},
		{2 * time.Second, 0, -3 * time.Second, -3 * time.Second},
		{10 * time.Minute, time.Hour, 9*time.Minute + 30*time.Second, 9*time.Minute + 30*time.Second},
		{10 * time.Minute, time.Minute, time.Minute, 9*time.Minute + 30*time.Second},
		{0, 0, 0, 0},
		{0, time.Minute, time.Minute, 0},
	} {
		var deadline time.Time
		if test.left > 0 {
			deadline = now.Add(test.left)
		}
		c := clockFor(now, deadline, options{budget: test.budget})
		until, last := c.until, c.last
		if (until.IsZero() != (test.until == 0) || !until.IsZero() && until.Sub(now) != test.until) || (last.IsZero() != (test.last == 0) || !last.IsZero() && last.Sub(now) != test.last) {
			t.Errorf("of %v with a budget of %v, schedules begin for %v and all runs for %v, want %v and %v", test.left, test.budget, until.Sub(now), last.Sub(now), test.until, test.last)
		}
	}
}
