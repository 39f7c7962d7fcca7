package fault

import "github.com/trimtab-dev/trimtab/kubesim/fault/internal/plan"

// Rule is a reason to leave a schedule out.
type Rule string

// The rules.
const (
	// NoEffect: a call that changes nothing is no point to crash at.
	NoEffect Rule = Rule(plan.NoEffect)
	// SameInstant: a crash after one write is the crash before the next if nothing lies between.
	SameInstant Rule = Rule(plan.SameInstant)
	// TooEarly: a user's act finds nothing to act on.
	TooEarly Rule = Rule(plan.TooEarly)
	// NothingHeld: a read is not stale if no event is held back.
	NothingHeld Rule = Rule(plan.NothingHeld)
	// Alternating: of the three ways to forge a status, each is played at every third moment.
	Alternating Rule = Rule(plan.Alternating)
	// Locked: a cache asks the author's code with a lock held, so that nothing hangs there.
	Locked Rule = Rule(plan.Locked)
	// Thinned: [AtMost] wants fewer.
	Thinned Rule = Rule(plan.Thinned)
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

// Only plays the given kinds of schedules. Without it all are played except [Pairs] and [Hangs].
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

// Unpruned switches rules off. Without arguments, all that can be switched off are.
func Unpruned(rules ...Rule) Option {
	if len(rules) == 0 {
		rules = []Rule{NoEffect, SameInstant, NothingHeld, Alternating}
	}
	return func(o *options) { o.keep = append(o.keep, rules...) }
}

// wanted are the kinds to play.
func (o options) wanted() []Kind {
	if len(o.kinds) > 0 {
		return o.kinds
	}
	return []Kind{Crashes, Faults, Stale, Duplicates, Races, Overtaken, Forgeries, Panics}
}

// switchedOff are the rules that are.
func (o options) switchedOff() []plan.Rule {
	all := make([]plan.Rule, len(o.keep))
	for i, r := range o.keep {
		all[i] = plan.Rule(r)
	}
	return all
}
