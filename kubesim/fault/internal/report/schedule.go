package report

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// How much of a schedule is shown.
const (
	beforeFault = 3
	afterFault  = 5
	failures    = 6  // calls after a fault that were answered with one
	rows        = 20 // of calls
	lastCalls   = 12 // of a run that did not come to its end
	lastAfter   = 5  // the same, if there is a fault to show, too
	gap         = 3  // calls that are rather shown than counted
	answers     = 80 // columns of an answer
)

// schedule is the calls around the faults as a table, with the faults in their places.
func schedule(in Input) string {
	r := in.Run
	if r == nil || len(r.Calls) == 0 {
		return "the operator made no call\n"
	}
	var b strings.Builder
	what := "undisturbed"
	if in.AtRest {
		what = "a user comes when all is quiet"
	}
	if len(r.Faults) > 0 {
		what = faults(r.Faults)
	}
	b.WriteString(cut(fmt.Sprintf("scenario %q, %s:", r.Scenario, what), columns) + "\n")
	b.WriteString(calls(r, shown(in), told(in)...))
	return b.String()
}

// told are the calls of which the body is shown: those that were disturbed, and the one after which something was wrong.
func told(in Input) (all []int) {
	for _, f := range in.Run.Faults {
		all = append(all, f.Call)
	}
	if len(in.Violations) > 0 {
		all = append(all, in.Violations[0].Call)
	}
	return all
}

// Calls is all calls of a run.
func Calls(r *history.Run) string {
	if len(r.Calls) == 0 {
		return "the operator made no call\n"
	}
	return fmt.Sprintf("scenario %q, all calls:\n", r.Scenario) + calls(r, shown(Input{Run: r, Whole: true}))
}

// LastCalls is the last telling calls of a run that did not come to its end; empty if none of them is of its last step.
func LastCalls(r *history.Run) string {
	s := selection{calls: r.Calls, wanted: map[int]bool{}, idle: true}
	s.take(len(r.Calls)-1, -1, lastCalls)
	some := s.filled()
	if len(some) == 0 || len(r.Steps) > 0 && some[len(some)-1] < r.Steps[len(r.Steps)-1].Call {
		return ""
	}
	return fmt.Sprintf("scenario %q, the last calls:\n", r.Scenario) + calls(r, some)
}

// calls is some calls of a run as a table, some with their bodies. No name in a request is cut: a column is as wide as what is longest in it.
func calls(r *history.Run, some []int, bodies ...int) string {
	var b strings.Builder
	t := table{run: r, bodies: bodies, out: &b, step: -1, last: -1, clock: len("0:00.000"), pass: len("reconcile"), target: len("request")}
	for _, i := range some {
		t.clock = max(t.clock, len(clock(r, r.Calls[i].At)))
		t.pass = max(t.pass, len(passOf(r, &r.Calls[i])))
		t.target = max(t.target, len(r.Calls[i].Target()))
	}
	fmt.Fprintf(&b, "     call  %-*s  proc  %-*s  %-*s  answer\n", t.clock, "time", t.pass, "reconcile", t.target, "request")
	for _, i := range some {
		t.add(i)
	}
	t.leaveOut(len(r.Calls))
	t.last = len(r.Calls) - 1
	t.strike(len(r.Calls)) // what no call followed
	for _, f := range r.Faults {
		if f.Call >= len(r.Calls) { // no call followed
			b.WriteString(struck(mark(f)))
		}
	}
	return b.String()
}

// table is the calls of a run, written one after the other.
type table struct {
	run        *history.Run
	out        *strings.Builder
	step, last int // the step and the call that were written last; -1 means none
	// clock, pass and target are the widths of columns.
	clock, pass, target int
	// bodies are calls of which the body is shown.
	bodies []int
}

// add writes a call, and before it what happened since the last one.
func (t *table) add(call int) {
	t.leaveOut(call)
	t.strike(call)
	t.enter(t.stepOf(call))
	t.out.WriteString(t.row(&t.run.Calls[call]) + "\n")
	t.last = call
}

// leaveOut says how many calls before one are not shown.
func (t *table) leaveOut(until int) {
	if n := until - t.last - 1; n > 0 {
		calls := "calls"
		if n == 1 {
			calls = "call"
		}
		fmt.Fprintf(t.out, "      ...  %d more %s\n", n, calls)
	}
}

// stepOf is the step that a call is in, which is no earlier one than that of the call before.
func (t *table) stepOf(call int) int {
	step := t.step
	for step+1 < len(t.run.Steps) && t.run.Steps[step+1].Call <= call {
		step++
	}
	return step
}

// enter names a step if what was written last was in an earlier one.
func (t *table) enter(step int) {
	if step > t.step && step < len(t.run.Steps) {
		t.out.WriteString(cut("     step  "+t.run.Steps[step].Name, columns) + "\n")
		t.step = step
	}
}

// strike tells the faults that hit no call, but came before one.
func (t *table) strike(call int) {
	for _, f := range t.run.Faults {
		if unplaced(f) && f.Next > t.last && f.Next <= call {
			t.enter(f.Step)
			t.out.WriteString(cut(fmt.Sprintf("  >>       %-*s  %s: %s", t.clock, clock(t.run, f.Time), f.Kind, f.At), columns) + "\n")
		}
	}
}

func unplaced(f history.Fault) bool { return f.Call == history.Nobody }

// faults says what was done to a run.
func faults(all []history.Fault) string {
	var parts []string
	for _, f := range all {
		text := f.Kind
		if f.Call != history.Nobody {
			text += fmt.Sprintf(" at call %d", f.Call)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", then ")
}

// row is one call.
func (t *table) row(c *history.Call) string {
	r := t.run
	sign := "    "
	var marks []string
	for _, f := range r.Faults {
		if f.Call == c.Index {
			sign, marks = "  >>", append(marks, mark(f))
		}
	}
	if c.Fault != "" && len(marks) == 0 {
		sign, marks = "  >>", append(marks, mark(history.Fault{Kind: c.Fault}))
	}
	line := fmt.Sprintf("%s %4d  %-*s  %-4d  %-*s  %-*s  %s", sign, c.Index, t.clock, clock(r, c.At), c.Process+1,
		t.pass, passOf(r, c), t.target, c.Target(), cut(answerOf(c), answers))
	line = strings.TrimRight(strings.ReplaceAll(line, "\n", " "), " ")
	for _, m := range marks {
		line += "\n" + strings.TrimSuffix(struck(m), "\n")
	}
	if c.Body != "" && slices.Contains(t.bodies, c.Index) {
		line += "\n" + cut(sign+"       with "+c.Body, columns)
	}
	return line
}

// strike is before what was done to a run, in its table of calls.
const strike = "  >>       "

// struck is what was done to a run as lines of its table.
func struck(mark string) (text string) {
	for line := range strings.Lines(wrappedIn(mark, "  ", columns-len(strike))) {
		text += strike + line
	}
	return text
}

// mark says what a fault is, and which object or event it concerns where that is not the call.
func mark(f history.Fault) string {
	meaning, ok := meanings[f.Kind]
	if f.Kind == "contended" && strings.HasPrefix(f.At, "a finalizer: ") {
		meaning = "another controller puts a finalizer on the object just before, and removes it half a minute after a deletion has begun"
	}
	if !ok {
		return f.Kind
	}
	return f.Kind + ": " + strings.NewReplacer("AT", strings.TrimPrefix(f.At, "pass of "), "EVENT", f.Event,
		"WATCH", "the watch of "+strings.TrimPrefix(f.At, "events of ")).Replace(meaning)
}

// passOf is the object whose reconcile makes a call, "-" for none.
func passOf(r *history.Run, c *history.Call) string {
	if c.Pass < 0 || c.Pass >= len(r.Passes) {
		return "-"
	}
	p := r.Passes[c.Pass]
	if p.Stale {
		return p.Object + " (stale)"
	}
	return p.Object
}

// meanings say in words what faults are: AT is what they hit, EVENT is an event, and WATCH its watch.
//
//arch:state a table that never changes
var meanings = map[string]string{
	"crash-before": "the process is killed, the request was never made",
	"crash-after":  "the process is killed, the request has its effect",
	"lost-answer":  "the request has its effect, the caller gets a timeout",
	"no-answer":    "the request has no effect, the caller gets a timeout",
	"conflict":     "somebody else writes the object just before",
	"throttled":    "too many requests, try again later",
	"failed":       "an internal error, without effect",
	"failed-after": "the request has its effect, the answer is an error",
	"refused":      "the connection is refused",
	"lag":          "the read shows what was before the last change",
	"stale-read":   "just before, AT does not show what the API server has sent already",
	"stale-pass":   "the reconcile of AT does not see what the API server has sent already",
	"replaced":     "somebody else deletes the object just before, and creates one under its name",
	"contended":    "another controller writes the object just before, and before the writes of it that follow",
	"late":         "EVENT, and what follows in WATCH, waits while the operator goes on",
	"merged":       "EVENT, and what follows in WATCH, waits while the operator goes on; then the cache sees only the last versions",
	"gone":         "before EVENT, WATCH ends with 410 Gone, the cache lists again",
	"closed":       "before EVENT, WATCH ends, and is opened again",
	"twice":        "EVENT comes once more",
	"race":         "a user acts just before: AT",
	"forged":       "just before, AT",
	"drift":        "AT",
	"drifted":      "just before, AT",
	"late-write":   "the process is killed, the request is on its way",
	"frozen":       "the process stands still",
	"thawed":       "the process goes on with what it was doing",
	"old-cache":    "the process is killed, the caches of the next one begin with an older state",
	"arrival":      "a request that was on its way has its effect",
	"late-effect":  "the caller gets a timeout, the request is on its way",
	"slow-request": "it takes long until the request has its effect",
	"slow-answer":  "the request has its effect, and it takes long until the answer is there",
	"overtaken":    "a user's delete, begun before the finalizer, removes the object just after",
}

// clock is the time since the beginning: "1:02.345".
func clock(r *history.Run, t time.Time) string {
	begin := r.Calls[0].At
	if len(r.Steps) > 0 {
		begin = r.Steps[0].At
	}
	d := max(t.Sub(begin), 0)
	return fmt.Sprintf("%d:%06.3f", int(d.Minutes()), (d % time.Minute).Seconds())
}

func answerOf(c *history.Call) string {
	switch {
	case c.Err != "":
		return c.Err
	case c.Side == history.External && c.Code != 0 && c.Code/100 != 2:
		return strings.TrimSpace(fmt.Sprintf("%d %s", c.Code, http.StatusText(c.Code)))
	case c.Write && !c.Changed:
		return "ok, nothing changed"
	}
	return "ok"
}

// shown are the calls to show: those about the faults and about what they broke, the last ones of a run that did not
// come to its end, and the first ones of an undisturbed run.
func shown(in Input) []int {
	if in.Whole {
		all := make([]int, len(in.Run.Calls))
		for i := range all {
			all[i] = i
		}
		return all
	}
	s := selection{calls: in.Run.Calls, wanted: map[int]bool{}, idle: aboutIdle(in.Violations)}
	for _, v := range in.Violations {
		if v.Call != history.Nobody && v.Call < len(s.calls) {
			s.around(v.Call, 1, 1)
			break
		}
	}
	if in.Unended { // what it does at the end is why there is none
		s.take(len(s.calls)-1, -1, lastShown(in.Run))
	}
	for _, f := range in.Run.Faults {
		if at := momentOf(in.Run, f); at >= 0 {
			s.around(at, beforeFault, afterFault)
		}
	}
	if len(in.Run.Faults) > 0 {
		s.failed(momentOf(in.Run, in.Run.Faults[0]), failures)
	}
	if v := in.Violations; len(v) > 0 && len(in.Run.Faults) > 0 { // from the cause to the effect
		s.between(momentOf(in.Run, in.Run.Faults[0]), v[0].Call)
	}
	if steps := in.Run.Steps; len(s.wanted) == 0 && in.AtRest && len(steps) > 0 {
		s.around(steps[len(steps)-1].Call, beforeFault, 12)
	}
	if len(s.wanted) == 0 {
		s.around(0, 0, 12)
	}
	return s.filled()
}

// lastShown is how many of the last calls are shown of a run that did not come to its end.
func lastShown(r *history.Run) int {
	if len(r.Faults) > 0 {
		return lastAfter
	}
	return lastCalls
}

// filled is what is wanted, and the few calls between that cost no more to show than to count.
func (s *selection) filled() (all []int) {
	last := -1
	for _, i := range slices.Sorted(maps.Keys(s.wanted)) {
		if i-last-1 > gap {
			last = i - 1
		}
		for n := last + 1; n <= i; n++ {
			all = append(all, n)
		}
		last = i
	}
	if rest := len(s.calls) - last - 1; rest <= gap {
		for n := range rest {
			all = append(all, last+1+n)
		}
	}
	return all
}

// momentOf is the call that a fault hit, or the first one after it; -1 means that none came.
func momentOf(r *history.Run, f history.Fault) int {
	switch {
	case !unplaced(f):
		return f.Call
	case f.Next < len(r.Calls):
		return f.Next
	}
	return -1
}

// selection is the calls that are shown: no more than there are rows.
type selection struct {
	calls  []history.Call
	wanted map[int]bool
	idle   bool // writes that change nothing are telling, too
}

// aboutIdle reports whether violations are about what is done for nothing.
func aboutIdle(all []history.Violation) bool {
	return slices.ContainsFunc(all, func(v history.Violation) bool { return v.Invariant == "I5" || v.Invariant == "I13" })
}

// around takes a call, and so many telling ones before and after it.
func (s *selection) around(center, before, after int) {
	s.want(center)
	s.take(center+1, 1, after)
	s.take(center-1, -1, before)
}

// failed takes n telling calls after one that were answered with an error: a conflict, for example, but not that there is nothing.
func (s *selection) failed(from, n int) {
	for i := from + 1; n > 0 && from >= 0 && s.has(i); i++ {
		c := &s.calls[i]
		failed := c.Err != "" && (c.Write || c.Code != http.StatusNotFound) || c.Side == history.External && c.Code >= http.StatusInternalServerError
		if failed && s.telling(c) && s.want(i) {
			n--
		}
	}
}

// between takes the telling calls after one and before another.
func (s *selection) between(from, to int) {
	for i := from + 1; from >= 0 && i < to && s.has(i); i++ {
		if s.telling(&s.calls[i]) {
			s.want(i)
		}
	}
}

// take takes n telling calls, beginning with one and going on by so many.
func (s *selection) take(from, by, n int) {
	for i := from; n > 0 && s.has(i); i += by {
		if s.telling(&s.calls[i]) && s.want(i) {
			n--
		}
	}
}

func (s *selection) has(i int) bool { return i >= 0 && i < len(s.calls) }

// want takes a call and reports whether there was a row for it.
func (s *selection) want(i int) bool {
	if !s.has(i) || len(s.wanted) >= rows && !s.wanted[i] {
		return false
	}
	s.wanted[i] = true
	return true
}

// telling reports whether a call may matter to a reader: not informers, discovery, leases and events, and not what changes
// nothing.
func (s *selection) telling(c *history.Call) bool {
	switch {
	case c.Side == history.External:
		return true
	case c.Resource == "leases" || c.Resource == "events" || c.Resource == "" || strings.HasPrefix(c.Resource, "/") || c.Verb == "watch":
		return false
	case c.Write:
		return s.idle || c.Changed || c.Err != "" || c.Fault != ""
	}
	return c.Pass != history.Nobody
}
