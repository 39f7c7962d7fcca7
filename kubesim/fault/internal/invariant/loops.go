package invariant

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// findNoise is I5: an operator at rest writes nothing and reads from its caches.
func findNoise(r, _ *index) []history.Violation {
	s := r.run.Silence
	if s == nil {
		return nil
	}
	type noise struct {
		text  string
		count int
		first *history.Call
	}
	writes := &noise{text: "wrote to Kubernetes"}
	reads := &noise{text: "read objects from the API server, past its caches,"}
	outside := &noise{text: "wrote to the external API"}
	looks := 0
	vain := r.vainTries(s)
	var found []history.Violation
	for i := max(s.Call, 0); i < min(s.LastCall, len(r.run.Calls)); i++ {
		c := &r.run.Calls[i]
		n := (*noise)(nil)
		switch {
		case vain[c.Pass]:
		case c.Side == history.External && c.Write:
			n = outside
		case c.Side == history.External:
			looks++
		case r.isAnnouncement(c):
			n = writes
		case history.Housekeeping(c.Group, c.Resource) || c.Resource == "":
		case c.Write:
			n = writes
		case s.Restarted != history.Nobody && c.Process >= s.Restarted: // a new process has to look
		case c.Pass == history.Nobody && c.Verb != "get":
		case r.asksWhoWrote(c):
		default:
			n = reads
		}
		if n == nil {
			continue
		}
		if n.count++; n.first == nil {
			n.first = c
		}
	}
	for _, n := range []*noise{writes, outside, reads} {
		if n.count > 0 {
			found = append(found, history.Violation{Call: n.first.Index, Message: fmt.Sprintf(
				"the cluster is at rest, yet the operator %s %s in %v, first: %s", n.text, times(n.count), s.To.Sub(s.From), target(n.first))})
		}
	}
	if s.ReadsAllowed >= 0 && looks > s.ReadsAllowed {
		found = append(found, history.Violation{Call: s.Call, Message: fmt.Sprintf(
			"the cluster is at rest, and the operator read the external API %s in %v; the scenario allows %d", times(looks), s.To.Sub(s.From), s.ReadsAllowed)})
	}
	return found
}

// asksWhoWrote tells the first read of an object since its last change, where a user has forged its
// status: who wrote a status the API server says alone, because caches leave that out, and whoever
// wants to know asks once for each version. Another object's reconcile may come to that late.
func (x *index) asksWhoWrote(c *history.Call) bool {
	if c.Verb != "get" || c.Name == "" || c.Pass == history.Nobody {
		return false
	}
	forged, last := false, 0
	for i := range x.run.Changes {
		h := &x.run.Changes[i]
		if x.at[i] <= c.Index && isAbout(c, h) {
			forged, last = forged || x.isForgery(h), max(last, x.at[i])
		}
	}
	return forged && !slices.ContainsFunc(x.run.Calls[last:c.Index], func(o history.Call) bool {
		return o.Verb == c.Verb && o.Pass != history.Nobody && o.Process == c.Process && x.run.Passes[o.Pass].Object == x.run.Passes[c.Pass].Object &&
			o.Group == c.Group && o.Resource == c.Resource && o.Namespace == c.Namespace && o.Name == c.Name
	})
}

// isAbout reports whether a call names the object of a change.
func isAbout(c *history.Call, h *history.Change) bool {
	return c.Side == history.Kubernetes && c.Group == h.Group && c.Resource == h.Resource && c.Namespace == h.Namespace && c.Name == h.Name
}

// isForgery tells a status that a user wrote as a schedule has it.
func (x *index) isForgery(h *history.Change) bool {
	return h.By == "user" && h.Before != nil && slices.ContainsFunc(x.run.Faults, func(f history.Fault) bool {
		return f.Kind == "forged" && f.Time.Equal(h.At)
	})
}

// vainTries are the passes of a new process in which it tried something outside for the first
// time, in vain: it cannot know that the external API refused this before.
func (x *index) vainTries(s *history.Silence) map[int]bool {
	passes, tried := map[int]bool{}, map[string]bool{}
	for i := max(s.Call, 0); s.Restarted != history.Nobody && i < min(s.LastCall, len(x.run.Calls)); i++ {
		c := &x.run.Calls[i]
		if c.Side == history.External && c.Write && !c.Changed && c.Process >= s.Restarted && c.Pass != history.Nobody && !tried[c.What] {
			passes[c.Pass], tried[c.What] = true, true
		}
	}
	return passes
}

// isAnnouncement tells the new events, but for that of a process that became the leader. What
// follows on an event is the recorder's book-keeping.
func (x *index) isAnnouncement(c *history.Call) bool {
	if c.Verb != "create" || c.Resource != "events" || !history.Housekeeping(c.Group, c.Resource) {
		return false
	}
	i := slices.IndexFunc(x.run.Changes, func(h history.Change) bool { return h.Call == c.Index && h.After != nil })
	return i >= 0 && x.run.Changes[i].After.Object["reason"] != "LeaderElection"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// target says what a call is about: "patch databases.demo.dev/status default/shop".
func target(c *history.Call) string {
	if c.Side == history.External {
		return c.What
	}
	resource := c.Resource
	if c.Group != "" {
		resource += "." + c.Group
	}
	if c.Subresource != "" {
		resource += "/" + c.Subresource
	}
	return c.Verb + " " + strings.TrimSpace(state.Key("", resource, c.Namespace, c.Name))
}

// The limits of I13.
const (
	idlePasses = 10          // within one second, beyond those that changes explain
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
		if r.idle(p) {
			recent := append(idle[w], p.Begin)
			for recent[0].Before(p.Begin.Add(-instant)) || recent[0].Equal(p.Begin.Add(-instant)) {
				recent = recent[1:]
			}
			idle[w] = recent
		}
		text := ""
		switch n := len(idle[w]); {
		case n > idlePasses && n > idlePasses+count(stirs, p.Begin.Add(-instant), p.Begin):
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
			found = append(found, history.Violation{Call: history.Nobody, Detail: p.Leaked, Message: fmt.Sprintf(
				"process %d ended and left %s behind; stop them when the manager's context ends", i, goroutines(p.Leaked))})
		}
	}
	return found
}

func goroutines(stacks string) string {
	if n := strings.Count("\n"+stacks, "\ngoroutine "); n > 1 {
		return fmt.Sprintf("%d goroutines", n)
	}
	return "a goroutine"
}
