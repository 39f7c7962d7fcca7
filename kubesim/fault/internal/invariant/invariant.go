// Package invariant judges runs: what must hold in every run of every operator, however it is
// disturbed. Each check is a function of the record of a run and of the undisturbed run.
package invariant

import (
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// Check is one invariant.
type Check struct {
	// ID is "I2", Title "no leak", Why one sentence: what users lose where it is broken.
	ID, Title, Why string
	// Find returns where r breaks it, at most ten places. r may be the undisturbed run itself.
	Find func(r, undisturbed *history.Run) []history.Violation
}

// most is how many violations one check may have.
const most = 10

// check is a Check that shares what is known of the runs with others.
type check struct {
	id, title, why string
	find           func(r, u *index) []history.Violation
}

// checks are in the order of how bad it is to break them: what is lost, stuck or wrong for good before
// what is only noise.
func checks() []check {
	return []check{
		{"I2", "no leak", "an external resource that is left behind costs money and nobody knows of it", findLeaks},
		{"I3", "no duplicate", "of two external resources for one object one is lost, or both act", findDuplicates},
		{"I6", "finalizer liveness", "an object that cannot go blocks its namespace and its successor", findStuckFinalizers},
		{"I14", "secret confinement", "whoever may read an object or an event may read what it says", findSpilled},
		{"I1", "ends as without the disturbance", "what a fault changes for good needs a human", findDivergence},
		{"I10", "ownership respect", "what others own is theirs", findTrespasses},
		{"I4", "no early effect", "a crash right after an effect that nothing durable leads to loses it", findEarlyEffects},
		{"I8", "truthful Ready", "people and pipelines act on Ready", findUntruths},
		{"I20", "a hang is reported", "what waits for code that never returns waits until somebody knows", findUnreported},
		{"I19", "status is about the present", "users read in it why an object is not as it should be", findMisreports},
		{"I13", "no hot loop", "a loop starves all other objects and the API server", findHotLoops},
		{"I7", "monotone observedGeneration", "waiting for a change to be observed relies on it", findGenerationErrors},
		{"I9", "condition hygiene", "alerts fire on conditions that flap or lie about their times", findConditionErrors},
		{"I17", "bounded goroutines", "what is left of each restart or leader change adds up", findRemains},
		{"I15", "role closure", "a role that is too small fails in production, one too large is a risk", findDenied},
		{"I5", "steady-state silence", "each needless request is multiplied by the number of objects", findNoise},
	}
}

// All returns the checks of one run: I1 to I10, I13 to I15, I17, I19, I20.
func All() []Check {
	var all []Check
	for _, c := range checks() {
		all = append(all, Check{ID: c.id, Title: c.title, Why: c.why, Find: func(r, undisturbed *history.Run) []history.Violation {
			y := reference(undisturbed)
			return c.judge(y.of(r), y)
		}})
	}
	return all
}

// Judge returns what r breaks of all of them, the most telling first.
func Judge(r, undisturbed *history.Run) []history.Violation { return Against(undisturbed)(r) }

// Against returns a [Judge] of many runs that are compared with the same undisturbed one. It may be
// called concurrently; the undisturbed run must not change any more.
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
