package invariant

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// The limits of I13.
const (
	idlePasses = 10          // within one second, beyond those that changes explain
	behindMore = 4           // times as many while a cache does not get what the operator waits for
	streak     = 15          // failing passes of which none waits
	instant    = time.Second // what is no waiting
)

// findHotLoops is I13: reconciles that come to nothing do not go on and on.
func findHotLoops(r, _ *index) []history.Violation {
	type who struct {
		process            int
		controller, object string
	}
	idle := map[who][]time.Time{}
	failing := map[who]int{}
	last := map[who]*history.Pass{}
	told := map[who]bool{}
	stirs := r.stirs()
	var found []history.Violation
	for i := range r.run.Passes {
		p := &r.run.Passes[i]
		w := who{p.Process, p.Controller, p.Object}
		if told[w] {
			continue
		}
		if before := last[w]; before != nil && before.Err != "" && before.Ended && p.Begin.Sub(before.Begin) < instant && !r.excused(before.Begin, p.Begin) {
			failing[w]++
		} else {
			failing[w] = 0
		}
		last[w] = p
		inVain := r.idle(p)
		if inVain {
			recent := append(idle[w], p.Begin)
			for recent[0].Before(p.Begin.Add(-instant)) || recent[0].Equal(p.Begin.Add(-instant)) {
				recent = recent[1:]
			}
			idle[w] = recent
		}
		text := ""
		most := idlePasses
		if r.isBehind(p.Begin) {
			most *= behindMore
		}
		switch n := len(idle[w]); {
		case inVain && n > most && n > most+count(stirs, p.Begin.Add(-instant), p.Begin):
			text = fmt.Sprintf("controller %s reconciled %s %d times within a second although nothing had changed", p.Controller, p.Object, n)
		case failing[w] > streak:
			text = fmt.Sprintf("controller %s reconciled %s %d times, each less than a second after the last had failed; the back-off has to grow: %s",
				p.Controller, p.Object, failing[w]+1, last[w].Err)
		}
		if text != "" {
			told[w] = true
			found = append(found, history.Violation{Message: text, Call: p.First})
		}
	}
	return found
}

// idle reports whether a pass had no effect and met no fault.
func (x *index) idle(p *history.Pass) bool {
	for i := max(p.First, 0); i < min(p.Last, len(x.run.Calls)); i++ {
		if c := &x.run.Calls[i]; c.Pass == p.Index && (c.Changed || c.Fault != "") {
			return false
		}
	}
	return true
}

// behindFor is for how long a schedule may keep events from a cache.
const behindFor = 10 * time.Second

// isBehind reports whether the schedule keeps events from a cache at a time, also by a fault of a cache's own
// request: an operator that waits for its own write to show asks its cache again and again.
func (x *index) isBehind(t time.Time) bool {
	return slices.ContainsFunc(x.run.Faults, func(f history.Fault) bool {
		return (slices.Contains([]string{"late", "merged", "gone", "closed"}, f.Kind) || x.isCaches(f.Call)) && within(t, f.Time, f.Time.Add(behindFor))
	})
}

// isCaches reports whether a call is a cache's.
func (x *index) isCaches(call int) bool {
	if call < 0 || call >= len(x.run.Calls) {
		return false
	}
	c := &x.run.Calls[call]
	return c.Pass == history.Nobody && (c.Verb == "watch" || c.Verb == "list") && c.Fault != ""
}

// stirs are the times at which anything changed or a fault came, in order of kind, not of time.
func (x *index) stirs() []time.Time {
	var all []time.Time
	for i := range x.run.Changes {
		if c := &x.run.Changes[i]; !history.Housekeeping(c.Group, c.Resource) && c.By != "setup" {
			all = append(all, c.At)
		}
	}
	for _, v := range x.run.External {
		all = append(all, v.At)
	}
	for _, f := range x.run.Faults {
		all = append(all, f.Time)
	}
	return all
}

func count(all []time.Time, from, to time.Time) int {
	n := 0
	for _, t := range all {
		if within(t, from, to) {
			n++
		}
	}
	return n
}

// excused reports whether between two times a fault came or somebody else acted.
func (x *index) excused(from, to time.Time) bool {
	for _, f := range x.run.Faults {
		if within(f.Time, from, to) {
			return true
		}
	}
	for i := range x.run.Changes {
		if c := &x.run.Changes[i]; c.By != operator && within(c.At, from, to) {
			return true
		}
	}
	for i := range x.run.External {
		if v := &x.run.External[i]; v.Call == history.Nobody && within(v.At, from, to) {
			return true
		}
	}
	return false
}

// findDenied is I15 for one run: the roles allow what the operator asks for.
func findDenied(r, _ *index) []history.Violation {
	if r.run.Access == nil || len(r.run.Access.Denied) == 0 {
		return nil
	}
	return []history.Violation{{Call: history.Nobody, Message: "no role of the operator allows " + strings.Join(r.run.Access.Denied, ", ") +
		"; add it to the roles, or do without"}}
}

// findRemains is I17: a process that ends leaves nothing, and nothing in it panics.
func findRemains(r, _ *index) []history.Violation {
	var found []history.Violation
	for i := range r.run.Processes {
		p := &r.run.Processes[i]
		if len(p.Panics) > 0 {
			first, _, _ := strings.Cut(p.Panics[0], "\n")
			found = append(found, history.Violation{Call: history.Nobody, Detail: strings.Join(p.Panics, "\n\n"), Message: fmt.Sprintf(
				"process %d panicked %s, first: %s", i, times(len(p.Panics)), first)})
		}
		if p.Collapsed != "" {
			found = append(found, history.Violation{Call: history.Nobody, Message: fmt.Sprintf(
				"process %d ended: the author's code panicked at %s, and nobody recovered it; recover wherever it is called", i, p.Collapsed)})
		}
		if p.Leaked != "" {
			by := creators(p.Leaked)
			found = append(found, history.Violation{Call: history.Nobody, Detail: p.Leaked, Subjects: by, Message: fmt.Sprintf(
				"process %d ended and left %s behind, started by %s; stop them when the manager's context ends", i, goroutines(p.Leaked), strings.Join(by, ", "))})
		}
	}
	return found
}

// creators are the functions that started the goroutines with these stacks.
func creators(stacks string) (all []string) {
	for line := range strings.Lines(stacks) {
		if by, ok := strings.CutPrefix(strings.TrimSpace(line), "created by "); ok {
			by, _, _ = strings.Cut(by, " in goroutine")
			all = append(all, by)
		}
	}
	if len(all) == 0 {
		return []string{"an unknown function"}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func goroutines(stacks string) string {
	if n := strings.Count("\n"+stacks, "\ngoroutine "); n > 1 {
		return fmt.Sprintf("%d goroutines", n)
	}
	return "a goroutine"
}
