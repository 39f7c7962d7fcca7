package fault

import (
	"fmt"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/judge"
)

// Violation is a broken invariant.
type Violation struct {
	// Invariant is its id.
	Invariant Invariant
	// Title is its name: "no leak".
	Title string
	// Message is one sentence that says what is wrong.
	Message string
	// Detail is a difference or a list that is shown below the message. It may be empty.
	Detail string
	// Call is the number of the call at which the invariant was broken, as in the report's table, or -1.
	Call int
}

// Report is the result of an exploration.
type Report struct {
	Scenario string
	// Writes and Calls are those of the undisturbed run, to Kubernetes and to the external API.
	Writes, Calls int
	// Schedules counts the schedules that were played, by kind, and Pruned those that were not, by rule.
	Schedules map[Kind]int
	Pruned    map[Rule]int
	// Unplayed is how many schedules were not played because the time was over, or because they were only listed.
	Unplayed int
	// Masked are fields of objects in which two undisturbed runs differ. Their content is random, so
	// they are not compared.
	Masked []string
	// Notes describe what the scenario does not check, perhaps unintentionally, such as a step that
	// changed nothing, habits of the operator that do no harm, and what was waived.
	Notes []string
	// Disturbed describes the disturbances of what was replayed, as in "failed at patch streams/status a/b".
	Disturbed []string
	// Findings are the schedules that broke an invariant, the worst first, and of equal ones the shortest.
	// What the undisturbed run breaks is a finding of that run, and of no other.
	Findings []Finding
	// Took is the real time that the exploration took.
	Took time.Duration
	// Trace is a hash of the undisturbed run. Equal runs have equal hashes.
	Trace string

	access *history.Access // nil for an administrator
	early  int             // schedules that were played and say nothing
	replay *replayed       // nil if it is of no replay
}

// Played is how many schedules were played: those that Schedules counts, and those that say nothing, because the user came too early
// or nobody could notice that an event was late.
func (r Report) Played() int {
	n := r.early
	for _, of := range r.Schedules {
		n += of
	}
	return n
}

// Finding is a schedule that broke an invariant.
type Finding struct {
	// Token is the token with which to replay the schedule.
	Token string
	// Violations are the broken invariants; there is at least one.
	Violations []Violation
	// Text is the full report of the finding.
	Text string

	found judge.Finding
}

// newFinding is a finding as users hold it.
func newFinding(f judge.Finding) Finding {
	all := make([]Violation, len(f.Violations))
	for i, v := range f.Violations {
		all[i] = Violation{Invariant: Invariant(v.Invariant), Title: v.Title, Message: v.Message, Detail: v.Detail, Call: v.Call}
	}
	return Finding{Token: f.Token, Violations: all, Text: f.Text, found: f}
}

// texts describes all findings: of those in which the same is wrong one in full, the one with the shortest
// schedule, and how many schedules show it.
func (r Report) texts() (texts []string) {
	schedules := map[string]int{}
	for _, f := range r.Findings {
		schedules[f.found.Group()]++
	}
	for _, f := range r.Findings {
		group := f.found.Group()
		switch n := schedules[group]; n {
		case 0:
			continue // one of the same was described
		case 1:
			texts = append(texts, f.Text)
		default:
			texts = append(texts, f.Text+fmt.Sprintf("%d schedules show this\n", n))
		}
		schedules[group] = 0
	}
	return texts
}
