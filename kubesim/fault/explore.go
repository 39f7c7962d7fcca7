package fault

import (
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/internal/history"
)

// Kind is a family of schedules.
type Kind string

// The families. Each schedule has one disturbance; the rest of the run is undisturbed.
const (
	// Crashes kill the operator before or after each write, to either side (F1, F2).
	Crashes Kind = "crashes"
	// Faults lose the answer of a write, let a call time out, conflict, be throttled or fail
	// (F3 to F7).
	Faults Kind = "faults"
	// Stale lets a cached read see less than the API server has told (F9).
	Stale Kind = "stale"
	// Duplicates deliver a watch event twice (F12).
	Duplicates Kind = "duplicates"
	// Races let a user edit, delete or re-create objects at any moment (F18).
	Races Kind = "races"
)

// Violation is a broken invariant.
type Violation = history.Violation

// Report is what an exploration came to.
type Report struct {
	Scenario string
	// Writes and Calls are those of the undisturbed run, to both sides.
	Writes, Calls int
	// Schedules counts those played, by kind; Pruned those left out, by rule.
	Schedules map[Kind]int
	Pruned    map[Rule]int
	// Findings are the schedules that broke an invariant, the shortest first.
	Findings []Finding
	// Took is real time.
	Took time.Duration
	// Trace is a hash of the undisturbed run: equal runs have equal ones.
	Trace string
}

// Finding is a schedule that broke an invariant.
type Finding struct {
	// Token replays it.
	Token string
	// Violations are what it broke; at least one.
	Violations []Violation
	// Text is the whole account for people.
	Text string
}

// Rule is a reason to leave a schedule out.
type Rule string

// The rules.
const (
	// NoEffect: a call that changes nothing is no point to crash at.
	NoEffect Rule = "no effect"
	// SameInstant: a crash after one write is the crash before the next if nothing lies between.
	SameInstant Rule = "same instant"
	// Renewals: a lease's renewals are all alike; only the first of a kind is a point.
	Renewals Rule = "renewals"
	// NothingHeld: a read is not stale if no event is held back.
	NothingHeld Rule = "nothing held"
)

// Option changes what [Run] and [Explore] do.
type Option func(*options)

type options struct {
	kinds   []Kind
	workers int
	keep    []Rule
}

// Only plays the given kinds of schedules; without it all are played.
func Only(kinds ...Kind) Option { return func(o *options) { o.kinds = append(o.kinds, kinds...) } }

// Workers says how many schedules are played at a time. 0 means one per processor.
func Workers(n int) Option { return func(o *options) { o.workers = n } }

// Unpruned switches rules off; without arguments, all of them.
func Unpruned(rules ...Rule) Option {
	return func(o *options) { o.keep = append(o.keep, rules...) }
}

// Run explores a scenario and fails the test for each finding. With -fault.replay it plays
// that schedule alone.
func Run(t *testing.T, s Scenario, opts ...Option) Report {
	t.Helper()
	r := Explore(t, s, opts...)
	for _, f := range r.Findings {
		t.Error(f.Text)
	}
	return r
}

// Explore is [Run] without failing the test for findings. A scenario that cannot be explored
// fails it: it does not come to rest, is not the same twice, or has a wrong step.
func Explore(t *testing.T, s Scenario, opts ...Option) Report {
	t.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	e, err := newExplorer(&s, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.quieten()()
	report, err := e.explore(t)
	if err != nil {
		t.Fatalf("scenario %q: %v", s.Name, err)
	}
	return report
}
