package fault

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/invariant"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/report"
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
	// Pairs are two disturbances of the other kinds in one run, a sample of [SampledPairs] or as
	// [Sample] says. They are not played unless asked for.
	Pairs Kind = "pairs"
	// Races let a user edit, delete or re-create objects at any moment (F18).
	Races Kind = "races"
	// Forgeries let a user write an object's status: that it is Ready, that it is not, or nothing.
	// The operator has to say the truth again at its next look, and to do nothing because of it.
	Forgeries Kind = "forgeries"
	// Panics let the author's code panic once at each of its points, as [Env.Author] names them, and
	// at those between an answer that was lost and the next call.
	Panics Kind = "panics"
	// Hangs let the author's code never return, once from each of the same points: what it was called
	// for is held up, and says so; the rest goes on, and after a restart all is as it should be.
	// They are not played unless asked for, as few frameworks leave such a call behind.
	Hangs Kind = "hangs"
	// Overtaken lets a user's DELETE read an object just before the operator puts a finalizer on
	// it, and remove it after that or after a later call: an API server decides by what it read.
	// What belongs to the object has to go although nobody will ask for it any more.
	Overtaken Kind = "overtaken"
)

// SampledPairs is how many pairs an exploration plays that is asked for [Pairs], unless [Sample]
// says otherwise.
const SampledPairs = 200

// Violation is a broken invariant.
type Violation struct {
	// Invariant is its id: "I2".
	Invariant string
	// Title is its name: "no leak".
	Title string
	// Message is one sentence that says what is wrong, and with what.
	Message string
	// Detail is a difference or a list to be shown below the sentence. It may be empty.
	Detail string
	// Call is the number of the call at which it shows, as in the report's table; -1 for none.
	Call int
}

// Report is what an exploration came to.
type Report struct {
	Scenario string
	// Writes and Calls are those of the undisturbed run, to both sides.
	Writes, Calls int
	// Schedules counts those played, by kind; Pruned those left out, by rule.
	Schedules map[Kind]int
	Pruned    map[Rule]int
	// Masked are fields of objects in which two undisturbed runs differ. They hold random
	// numbers, so nothing is compared there.
	Masked []string
	// Notes tell what the scenario leaves unchecked although that may not be meant, such as a step
	// that changed nothing.
	Notes []string
	// Disturbed says, of a replay, what was disturbed: "failed at patch streams/status a/b".
	Disturbed []string
	// Findings are the schedules that broke an invariant, the shortest first.
	Findings []Finding
	// Took is real time.
	Took   time.Duration
	access *history.Access // nil for an administrator

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

	job  job
	step int // during which the run was disturbed
}

// group is the same for findings that break the same by the same kind of disturbance.
func (f Finding) group() string {
	v := f.Violations[0]
	if len(f.job.schedule) == 0 {
		return v.Invariant + v.Title
	}
	return v.Invariant + v.Title + string(kindOf(f.job.schedule[0]))
}

// Rule is a reason to leave a schedule out.
type Rule string

// The rules.
const (
	// NoEffect: a call that changes nothing is no point to crash at.
	NoEffect Rule = "no effect"
	// SameInstant: a crash after one write is the crash before the next if nothing lies between.
	SameInstant Rule = "same instant"
	// TooEarly: a user's act finds nothing to act on.
	TooEarly Rule = "too early"
	// NothingHeld: a read is not stale if no event is held back.
	NothingHeld Rule = "nothing held"
	// Alternating: of the three ways to forge a status, each is played at every third moment.
	Alternating Rule = "alternating"
	// Locked: a cache asks the author's code with a lock held, so that nothing hangs there.
	Locked Rule = "locked"
	// Thinned: [AtMost] wants fewer.
	Thinned Rule = "thinned"
)

// Option changes what [Run] and [Explore] do.
type Option func(*options)

type options struct {
	kinds   []Kind
	workers int
	keep    []Rule
	pairs   int
	most    map[Kind]int
	waived  []string
}

// Only plays the given kinds of schedules; without it all are played.
func Only(kinds ...Kind) Option { return func(o *options) { o.kinds = append(o.kinds, kinds...) } }

// Workers says how many schedules are played at a time. 0 means one per processor.
func Workers(n int) Option { return func(o *options) { o.workers = n } }

// Sample says how many pairs are played if [Pairs] are asked for. 0 means [SampledPairs]; more
// begin with those that fewer are. A number below 0 is refused.
func Sample(pairs int) Option { return func(o *options) { o.pairs = pairs } }

// AtMost plays at most n schedules of each of these kinds, spread evenly over all that there are. 0
// means all.
func AtMost(n int, kinds ...Kind) Option {
	return func(o *options) {
		if o.most == nil {
			o.most = map[Kind]int{}
		}
		for _, k := range kinds {
			o.most[k] = n
		}
	}
}

// Waive leaves invariants out, by their ids, as "I19": what breaks them is no finding.
func Waive(invariants ...string) Option {
	return func(o *options) { o.waived = append(o.waived, invariants...) }
}

// Unpruned switches rules off; without arguments, all of them.
func Unpruned(rules ...Rule) Option {
	if len(rules) == 0 {
		rules = []Rule{NoEffect, SameInstant, NothingHeld, Alternating}
	}
	return func(o *options) { o.keep = append(o.keep, rules...) }
}

// Run explores a scenario and fails the test for each way in which an invariant was broken.
// With -fault.replay it plays that schedule alone.
func Run(t *testing.T, s Scenario, opts ...Option) Report {
	t.Helper()
	r := Explore(t, s, opts...)
	t.Log(r)
	for _, text := range r.texts() {
		t.Error(text)
	}
	return r
}

// Suite runs the scenarios of one operator, each as a subtest, and holds the operator's roles
// against what all of them together needed: a right that no scenario uses is one too many
// (I15). A role's annotation "kubesim.trimtab.dev/justified" lists rights that are meant.
func Suite(t *testing.T, scenarios []Scenario, opts ...Option) []Report {
	t.Helper()
	var reports []Report
	var accesses []*history.Access
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			r := Run(t, s, opts...)
			reports = append(reports, r)
			if r.access != nil {
				accesses = append(accesses, r.access)
			}
		})
	}
	if scenario, _, err := parseToken(*replayFlag); *replayFlag != "" && err == nil &&
		!slices.ContainsFunc(scenarios, func(s Scenario) bool { return s.Name == scenario }) {
		t.Errorf("replay token %s is of scenario %q, which is none of this suite", *replayFlag, scenario)
	}
	if len(reports) == len(scenarios) && *replayFlag == "" && !slices.Contains(o.waived, "I15") {
		for _, v := range invariant.Closure(accesses) {
			t.Errorf("%s, %s: %s\n%s", v.Invariant, v.Title, v.Message, v.Detail)
		}
	}
	return reports
}

// String tells in a line what was explored, and in one more each what was left out.
func (r Report) String() string {
	return report.Summary(report.Exploration{
		Scenario: r.Scenario, Writes: r.Writes, Calls: r.Calls, Took: r.Took, Findings: len(r.Findings),
		Schedules: counts(r.Schedules), Pruned: counts(r.Pruned), Masked: r.Masked, Notes: r.Notes,
	})
}

func counts[K ~string](m map[K]int) (all []report.Count) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, report.Count{Name: string(k), N: m[k]})
	}
	return all
}

// texts tells of all findings: of those that broke the same in the same way one in full,
// the one with the shortest schedule.
func (r Report) texts() []string {
	var texts []string
	groups := map[string]int{}
	for _, f := range r.Findings {
		key := f.group()
		if i, ok := groups[key]; ok {
			texts[i] += "\nalso: " + f.Token
			continue
		}
		groups[key] = len(texts)
		texts = append(texts, f.Text)
	}
	return texts
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
