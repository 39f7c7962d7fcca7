// Package invariant judges runs: what must hold in every run of every operator, however it is
// disturbed. Each check is a function of the record of a run and of the undisturbed run.
package invariant

import (
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// most is how many violations one check may have.
const most = 10

// check is one invariant.
type check struct {
	id, title string // "I2", "no leak"
	// find returns where r breaks it, at most ten places. r may be the undisturbed run itself.
	find func(r, u *index) []history.Violation
}

// checks are in the order of how bad it is to break them: what is lost, stuck or wrong for good before
// what is only noise. Each has what users lose where it is broken.
func checks() []check {
	return []check{
		{"I2", "no leak", findLeaks},                                // an external resource that is left behind costs money and nobody knows of it
		{"I3", "no duplicate", findDuplicates},                      // of two external resources for one object one is lost, or both act
		{"I6", "finalizer liveness", findStuckFinalizers},           // an object that cannot go blocks its namespace and its successor
		{"I14", "secret confinement", findSpilled},                  // whoever may read an object or an event may read what it says
		{"I1", "ends as without the disturbance", findDivergence},   // what a fault changes for good needs a human
		{"I10", "ownership respect", findTrespasses},                // what others own is theirs
		{"I4", "no early effect", findEarlyEffects},                 // a crash right after an effect that nothing durable leads to loses it
		{"I8", "truthful Ready", findUntruths},                      // people and pipelines act on Ready
		{"I20", "a hang is reported", findUnreported},               // what waits for code that never returns waits until somebody knows
		{"I19", "status is about the present", findMisreports},      // users read in it why an object is not as it should be
		{"I13", "no hot loop", findHotLoops},                        // a loop starves all other objects and the API server
		{"I7", "monotone observedGeneration", findGenerationErrors}, // waiting for a change to be observed relies on it
		{"I9", "condition hygiene", findConditionErrors},            // alerts fire on conditions that flap or lie about their times
		{"I17", "bounded goroutines", findRemains},                  // what is left of each restart or leader change adds up
		{"I15", "role closure", findDenied},                         // a role that is too small fails in production, one too large is a risk
		{"I5", "steady-state silence", findNoise},                   // each needless request is multiplied by the number of objects
	}
}

// One returns the check of one invariant alone.
func One(id string) func(r, undisturbed *history.Run) []history.Violation {
	all := checks()
	c := all[slices.IndexFunc(all, func(c check) bool { return c.id == id })]
	return func(r, undisturbed *history.Run) []history.Violation {
		y := reference(undisturbed)
		return c.judge(y.of(r), y)
	}
}

// Against returns what r breaks of all invariants, the most telling first, for runs r that are compared with the same undisturbed
// one. It may be called concurrently; the undisturbed run must not change any more.
func Against(undisturbed *history.Run) func(r *history.Run) []history.Violation {
	y := reference(undisturbed)
	all := checks()
	return func(r *history.Run) []history.Violation {
		x := y.of(r)
		var found []history.Violation
		for _, c := range all {
			found = append(found, c.judge(x, y)...)
		}
		return found
	}
}

// of returns the index of a run; x is that of the undisturbed run, which r may be.
func (x *index) of(r *history.Run) *index {
	if r == x.run {
		return x
	}
	return newIndex(r)
}

func (c check) judge(r, u *index) []history.Violation {
	found := c.find(r, u)
	found = found[:min(len(found), most)]
	for i := range found {
		found[i].Invariant, found[i].Title = c.id, c.title
		if found[i].Subjects == nil {
			found[i].Subjects = []string{withoutNumbers(found[i].Message)}
		}
		found[i].Message = withShortWords(found[i].Message)
	}
	return found
}

// withShortWords is a text in which words that are longer than a line, such as names and paths, have lost their middle.
func withShortWords(text string) string {
	const most, begin, end = 100, 60, 30
	words := strings.Split(text, " ")
	for i, w := range words {
		if r := []rune(w); len(r) > most {
			words[i] = string(r[:begin]) + "…" + string(r[len(r)-end:])
		}
	}
	return strings.Join(words, " ")
}

// withoutNumbers is a text without what is counted or quoted in it.
func withoutNumbers(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 0 { // else it was quoted
			b.WriteString(strings.Map(func(r rune) rune {
				if '0' <= r && r <= '9' {
					return -1
				}
				return r
			}, part))
		}
	}
	return b.String()
}

// Rank is the place of an invariant in the order of how bad it is to break it, the worst first.
func Rank(id string) int {
	return slices.IndexFunc(checks(), func(c check) bool { return c.id == id })
}

// Closure returns what the roles allow and no run of an exploration needed (I15). Runs without
// roles say nothing.
func Closure(all []*history.Access) []history.Violation {
	var unused []string
	first := true
	for _, a := range all {
		if a == nil {
			continue
		}
		if first {
			unused, first = slices.Clone(a.Unused), false
			continue
		}
		unused = slices.DeleteFunc(unused, func(rule string) bool { return !slices.Contains(a.Unused, rule) })
	}
	if len(unused) == 0 {
		return nil
	}
	slices.Sort(unused)
	return []history.Violation{{
		Invariant: "I15", Title: "role closure", Call: history.Nobody,
		Message: "no run needed what the operator's roles allow: " + strings.Join(unused, ", ") +
			"; take it out of the roles, or add a step that needs it",
	}}
}
