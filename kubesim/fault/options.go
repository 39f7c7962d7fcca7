package fault

import (
	"fmt"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/invariant"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/plan"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
)

// Rule is a reason not to play a schedule.
type Rule string

// The rules.
const (
	// NoEffect: there is no crash at a call that changes nothing.
	NoEffect Rule = Rule(plan.NoEffect)
	// SameInstant: a crash after one write equals the crash before the next one if nothing happens in
	// between.
	SameInstant Rule = Rule(plan.SameInstant)
	// TooEarly: the object that a user would change does not exist yet.
	TooEarly Rule = Rule(plan.TooEarly)
	// NothingHeld: a read cannot be stale if there is no event to hold back.
	NothingHeld Rule = Rule(plan.NothingHeld)
	// Alternating: each of the three ways to forge a status is played only at every third moment, and each
	// way to delay events, and a closed watch, only at every second event. Of what [Drift] does, one is played at each write, in turn.
	Alternating Rule = Rule(plan.Alternating)
	// Locked: the author's code does not hang in calls that a cache makes while it holds a lock.
	Locked Rule = Rule(plan.Locked)
	// Thinned: [AtMost] limits the number.
	Thinned Rule = Rule(plan.Thinned)
	// SameState: a second crash leaves the same as a crash that is played already, or a second disturbance
	// comes when a process that started from the same state has asked the same and got the same answers.
	SameState Rule = Rule(plan.SameState)
	// Independent: the call of a recovery from a crash is about other objects than the call at which the
	// operator was killed, and the undisturbed run makes it in the same step with the same result.
	Independent Rule = Rule(plan.Independent)
	// OutOfTime: the time was over, see [Budget].
	OutOfTime Rule = Rule(plan.OutOfTime)
)

// Option changes the behavior of [Run] and [Explore].
type Option func(*options)

type options struct {
	kinds   []Kind
	workers int
	keep    []Rule
	pairs   int
	most    map[Kind]int
	waived  []waiver
	budget  time.Duration
	seed    uint64
	replays []string

	scenario string // that is explored
	later    int    // scenarios of the same suite that come later
}

// waiver is an invariant that may be broken.
type waiver struct {
	invariant Invariant
	reason    string
}

// Only plays the given kinds of schedules. Without it, all are played except [Pairs], [Recoveries],
// [Replacements], [Contention], [Hangs], [Absences], [LateWrites], [Freezes], [OldCaches], [LateEffects],
// [SlowCalls] and [Drift].
func Only(kinds ...Kind) Option { return func(o *options) { o.kinds = append(o.kinds, kinds...) } }

// Workers sets how many schedules are played concurrently. 0 means one per processor.
func Workers(n int) Option { return func(o *options) { o.workers = n } }

// Sample sets how many pairs are played if [Only] names [Pairs]. 0 means [SampledPairs]. A larger sample
// contains a smaller one. A negative number is an error.
func Sample(pairs int) Option { return func(o *options) { o.pairs = pairs } }

// Budget limits the real time of an exploration. Crashes are played first, then lost answers, then all
// others, those of each kind spread over the run. If the time is over before all are played, a note says how
// many are not, and how to go on. 0 means the time until the test's deadline, less a margin of at most
// a minute, and a little for each later scenario of a [Suite]. A negative time is an error.
func Budget(d time.Duration) Option { return func(o *options) { o.budget = d } }

// Seed plays the schedules in a random order, which n determines, and other pairs than without it. With [AtMost] or
// [Budget] that is a random sample of all schedules: the next number is another sample. 0 means the order
// that [Budget] describes.
func Seed(n uint64) Option { return func(o *options) { o.seed = n } }

// AtMost plays at most n schedules of each of these kinds, spread evenly over all of them, and of [Faults] over all kinds of
// calls, but at least one for each kind of call; without kinds, at most n in all, in the order that [Budget] describes. 0 means all.
func AtMost(n int, kinds ...Kind) Option {
	return func(o *options) {
		if o.most == nil {
			o.most = map[Kind]int{}
		}
		if len(kinds) == 0 {
			o.most[""] = n
		}
		for _, k := range kinds {
			o.most[k] = n
		}
	}
}

// Waive lets the operator break an invariant: that is a note with the reason then, and no finding. The
// reason must not be empty.
func Waive(invariant Invariant, reason string) Option {
	return func(o *options) { o.waived = append(o.waived, waiver{invariant: invariant, reason: reason}) }
}

// Replay also plays the schedules with these tokens, from reports: those that have found bugs before. In a [Suite], each scenario
// plays its own. A token whose schedule disturbs nothing any more fails the test.
func Replay(tokens ...string) Option {
	return func(o *options) { o.replays = append(o.replays, tokens...) }
}

// For gives one scenario of a [Suite] options that the others do not have.
func For(scenario string, opts ...Option) Option {
	return func(o *options) {
		if o.scenario != scenario {
			return
		}
		for _, opt := range opts {
			opt(o)
		}
	}
}

// Unpruned disables rules, or all that can be disabled if there are no arguments.
func Unpruned(rules ...Rule) Option {
	if len(rules) == 0 {
		rules = []Rule{NoEffect, SameInstant, NothingHeld, Alternating, SameState, Independent}
	}
	return func(o *options) { o.keep = append(o.keep, rules...) }
}

// wanted are the kinds to play.
func (o options) wanted() []Kind {
	if len(o.kinds) > 0 {
		return o.kinds
	}
	return []Kind{Crashes, Faults, Stale, Duplicates, Delays, Breaks, Races, Overtaken, Forgeries, Panics}
}

// waivedIDs are the invariants that may be broken.
func (o options) waivedIDs() (ids []string) {
	for _, w := range o.waived {
		ids = append(ids, string(w.invariant))
	}
	return ids
}

// checkWaivers says what is wrong with a waiver.
func (o options) checkWaivers() error {
	for _, w := range o.waived {
		switch {
		case invariant.Rank(string(w.invariant)) < 0:
			return sandbox.MisuseError(fmt.Sprintf("Waive(%q, ...) names no invariant; write fault.I5 or the like", w.invariant))
		case strings.TrimSpace(w.reason) == "":
			return sandbox.MisuseError(fmt.Sprintf("Waive(fault.%s, ...) gives no reason; say why the operator may break %s", w.invariant, w.invariant))
		}
	}
	return nil
}

// switchedOff are the rules that are.
func (o options) switchedOff() []plan.Rule {
	all := make([]plan.Rule, len(o.keep))
	for i, r := range o.keep {
		all[i] = plan.Rule(r)
	}
	return all
}
