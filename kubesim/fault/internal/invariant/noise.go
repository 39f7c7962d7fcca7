package invariant

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// noise is what an operator does again and again, or once, while the cluster is at rest.
type noise struct {
	text, subject string
	calls         []*history.Call
	refused       *history.Call // what the external API refuses, if these calls try that again
}

// findNoise is I5: an operator at rest writes nothing and reads from its caches. Habits that do no harm
// are violations that are marked as such.
func findNoise(r, u *index) []history.Violation {
	s := r.run.Silence
	if s == nil {
		return nil
	}
	span := s.To.Sub(s.From)
	all, looks := r.noises(s)
	var found []history.Violation
	for _, n := range all {
		first := n.calls[0]
		v := history.Violation{Call: first.Index, Subjects: []string{n.subject}, Message: fmt.Sprintf(
			"the cluster is at rest, yet the operator %s %s in %v, first: %s, %s", n.text, times(len(n.calls)), span, target(first), r.when(s, first))}
		if others := n.others(); len(others) > 0 {
			v.Message += "; then " + strings.Join(others, ", ")
		}
		if habit := r.habit(s, n, r == u); habit != "" {
			v.Harmless, v.Message = true, habit
		}
		found = append(found, v)
	}
	if s.ReadsAllowed >= 0 && looks > s.ReadsAllowed {
		found = append(found, history.Violation{Call: s.Call, Message: fmt.Sprintf(
			"the cluster is at rest, and the operator read the external API %s in %v; the scenario allows %d", times(looks), span, s.ReadsAllowed)})
	}
	return found
}

// mostNamed bounds how many targets of a noise, names of objects and IDs are named.
const mostNamed = 10

// others are what else than its first target a noise is about.
func (n *noise) others() (all []string) {
	seen := map[string]bool{target(n.calls[0]): true}
	for _, c := range n.calls {
		if t := target(c); !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	return firstOf(all, mostNamed-1)
}

// firstOf is so many words of a list, and how many more there are.
func firstOf(all []string, most int) []string {
	if more := len(all) - most; more > 0 {
		return append(slices.Clone(all[:most]), fmt.Sprintf("and %d more", more))
	}
	return all
}

// listed is a list as part of a sentence, which does not become longer than a reader can take in.
func listed(all []string) string { return strings.Join(firstOf(all, mostNamed), ", ") }

// when says in words at what time of a silence a call is made.
func (x *index) when(s *history.Silence, c *history.Call) string {
	switch {
	case s.Restarted == history.Nobody || c.Process < s.Restarted:
		return fmt.Sprintf("%v after the last change", c.At.Sub(s.From).Round(time.Second))
	case c.Pass != history.Nobody && x.isFirst(&x.run.Passes[c.Pass]):
		return "in the first pass after a restart"
	}
	return fmt.Sprintf("%v after a restart", c.At.Sub(x.run.Processes[c.Process].Started).Round(time.Second))
}

// noises returns what the operator did in a silence, writes first, and how often it read the external API.
func (x *index) noises(s *history.Silence) (all []*noise, looks int) {
	var kinds [3][]*noise
	vain, refusals := x.vainTries(s), x.refusals(s)
	add := func(kind int, text string, c *history.Call) {
		subject, refused := text+" "+c.Sort(), refusals[c.Pass]
		i := slices.IndexFunc(kinds[kind], func(n *noise) bool { return n.subject == subject && (n.refused == nil) == (refused == nil) })
		if i < 0 {
			i = len(kinds[kind])
			kinds[kind] = append(kinds[kind], &noise{text: text, subject: subject, refused: refused})
		}
		kinds[kind][i].calls = append(kinds[kind][i].calls, c)
	}
	for i := max(s.Call, 0); i < min(s.LastCall, len(x.run.Calls)); i++ {
		c := &x.run.Calls[i]
		switch {
		case vain[c.Pass]:
		case c.Side == history.External && c.Write:
			add(1, "wrote to the external API", c)
		case c.Side == history.External && refusals[c.Pass] == nil:
			looks++
		case c.Side == history.External:
		case x.isAnnouncement(c):
			add(0, "wrote to Kubernetes", c)
		case history.Housekeeping(c.Group, c.Resource) || c.Resource == "":
		case c.Write:
			add(0, "wrote to Kubernetes", c)
		case s.Restarted != history.Nobody && c.Process >= s.Restarted: // a new process has to look
		case c.Pass == history.Nobody && c.Verb != "get":
		case x.asksWhoWrote(c):
		default:
			add(2, "read objects from the API server, past its caches,", c)
		}
	}
	return slices.Concat(kinds[0], kinds[1], kinds[2]), looks
}

// habit says what an operator does at rest that does no harm: it tries again what the external API refuses, in its first pass
// after a restart it writes what is there already, or, in the undisturbed run, a timer of its own begins something. It is
// empty for noise.
func (x *index) habit(s *history.Silence, n *noise, undisturbed bool) string {
	if n.refused != nil {
		return "at rest the operator tries again what the external API refuses: " + target(n.refused)
	}
	if s.Restarted == history.Nobody {
		return ""
	}
	if !slices.ContainsFunc(n.calls, func(c *history.Call) bool { return !x.isGreeting(s, c) }) {
		where := "in the first pass after a restart"
		if c := n.calls[0]; c.Pass == history.Nobody && !x.isAnnouncement(c) {
			where = "as it starts again"
		}
		return fmt.Sprintf("%s the operator writes what is there already: %s", where, target(n.calls[0]))
	}
	begun := x.begunByTimers(s)
	if !undisturbed || slices.ContainsFunc(n.calls, func(c *history.Call) bool { return begun[c.Index] == nil && !x.isGreeting(s, c) }) {
		return ""
	}
	var timers []*history.Call
	for _, c := range n.calls {
		if timer := begun[c.Index]; timer != nil && !slices.Contains(timers, timer) {
			timers = append(timers, timer)
		}
	}
	return fmt.Sprintf("at rest a timer of the operator changes something %s, %v after the last change: %s",
		times(len(timers)), timers[0].At.Sub(s.From).Round(time.Second), target(timers[0]))
}

// pause is how long nothing happens when what a timer began has come to its end. The grace period of Pods is shorter.
const pause = time.Minute

// begunByTimers returns, by the indexes of calls, the write of a timer that each goes back to: all of the pass
// that makes it, and what follows until the cluster is at rest again.
func (x *index) begunByTimers(s *history.Silence) map[int]*history.Call {
	begun := map[int]*history.Call{}
	var timer *history.Call
	var last time.Time
	for i := max(s.Call, 0); i < min(s.LastCall, len(x.run.Calls)); i++ {
		c := &x.run.Calls[i]
		if timer != nil && c.At.Sub(x.lastChange(last, c.At)) >= pause {
			timer = nil
		}
		if timer == nil && x.isTimed(s, c) {
			timer = c
			for _, before := range x.earlierInPass(s, c) {
				begun[before] = timer
			}
		}
		if timer != nil {
			begun[i] = timer
		}
		last = c.At
	}
	return begun
}

// lastChange is when something changed last between two times, or the first of these.
func (x *index) lastChange(from, until time.Time) time.Time {
	for i := range x.run.Changes {
		if at := x.run.Changes[i].At; at.After(from) && at.Before(until) {
			from = at
		}
	}
	return from
}

// earlierInPass lists the calls of a silence that the pass of a call makes before it.
func (x *index) earlierInPass(s *history.Silence, c *history.Call) (all []int) {
	if c.Pass == history.Nobody {
		return nil
	}
	for i := max(s.Call, x.run.Passes[c.Pass].First); i < c.Index; i++ {
		if x.run.Calls[i].Pass == c.Pass {
			all = append(all, i)
		}
	}
	return all
}

// isGreeting reports whether a write is one of a new process that sees an object for the first time or starts, and
// changes nothing. An event is no change to what an operator works on.
func (x *index) isGreeting(s *history.Silence, c *history.Call) bool {
	switch {
	case !c.Write || c.Process < s.Restarted || x.changesAnything(c) && !history.Housekeeping(c.Group, c.Resource):
		return false
	case c.Pass == history.Nobody && x.isAnnouncement(c):
		return x.isAnnouncedAtFirst(c)
	case c.Pass == history.Nobody: // of a runnable that makes sure of something when it starts
		return c.At.Sub(x.run.Processes[c.Process].Started) < pause
	}
	return x.isFirst(&x.run.Passes[c.Pass])
}

// changesAnything reports whether a write changes more than whether an empty list is there.
func (x *index) changesAnything(c *history.Call) bool {
	if !c.Changed {
		return false
	}
	i := slices.IndexFunc(x.run.Changes, func(h history.Change) bool { return h.Call == c.Index })
	return i < 0 || x.run.Changes[i].Before == nil || x.run.Changes[i].After == nil || !state.SameButEmptyLists(x.run.Changes[i].Before, x.run.Changes[i].After)
}

// isFirst reports whether a pass is the first of its controller and process for its object.
func (x *index) isFirst(pass *history.Pass) bool {
	return !slices.ContainsFunc(x.run.Passes[:pass.Index], func(p history.Pass) bool {
		return p.Process == pass.Process && p.Controller == pass.Controller && p.Object == pass.Object
	})
}

// isAnnouncedAtFirst reports whether an event, which a recorder writes in a goroutine of its own, comes from the
// first passes of its process for the object that it is about: there were no others yet.
func (x *index) isAnnouncedAtFirst(c *history.Call) bool {
	about := x.aboutObject(c)
	passes := 0
	for i := range x.run.Passes {
		p := &x.run.Passes[i]
		if p.Process != c.Process || p.Object != about || p.First > c.Index {
			continue
		}
		if !x.isFirst(p) {
			return false
		}
		passes++
	}
	return passes > 0
}

// aboutObject is the object that an event is about, as passes name it.
func (x *index) aboutObject(c *history.Call) string {
	i := slices.IndexFunc(x.run.Changes, func(h history.Change) bool { return h.Call == c.Index && h.After != nil })
	if i < 0 {
		return ""
	}
	for _, field := range []string{"involvedObject", "regarding"} {
		if m, ok := x.run.Changes[i].After.Object[field].(map[string]any); ok {
			namespace, _ := m["namespace"].(string)
			name, _ := m["name"].(string)
			return strings.TrimPrefix(namespace+"/"+name, "/")
		}
	}
	return ""
}

// isTimed reports whether a write changes something in the silence before or after a restart, but not
// because of the restart, and is the only one of its kind to its object: what happens again and again is
// no timer that runs out.
func (x *index) isTimed(s *history.Silence, c *history.Call) bool {
	if !c.Write || !c.Changed || history.Housekeeping(c.Group, c.Resource) || c.Process >= s.Restarted && c.At.Sub(x.run.Processes[c.Process].Started) < instant {
		return false
	}
	return !slices.ContainsFunc(x.run.Calls[s.Call:s.LastCall], func(o history.Call) bool {
		refused := o.Verb == "create" && !o.Changed // since what the timer created is there already
		return o.Index != c.Index && o.Write && !refused && target(&o) == target(c)
	})
}

// asksWhoWrote reports whether a call is the first read of an object since its last change, after a user has
// forged its status. Caches leave out who wrote a status, so that whoever wants to know asks the API server,
// once for each version. The reconcile of another object may ask later.
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

// isForgery reports whether a change is a status that a user wrote because the schedule says so.
func (x *index) isForgery(h *history.Change) bool {
	return h.By == "user" && h.Before != nil && slices.ContainsFunc(x.run.Faults, func(f history.Fault) bool {
		return f.Kind == "forged" && f.Time.Equal(h.At)
	})
}

// emptied are the keys of objects whose status a user has removed because the schedule says so. That a condition is not
// True is no different from not being there, and who decides by the past cannot know it any more.
func (x *index) emptied() (keys []string) {
	for i := range x.run.Changes {
		h := &x.run.Changes[i]
		if h.After == nil || !x.isForgery(h) {
			continue
		}
		if status, _, _ := unstructured.NestedMap(h.After.Object, "status"); len(status) == 0 {
			keys = append(keys, state.Key(h.Group, h.Resource, h.Namespace, h.Name))
		}
	}
	return keys
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

// refusals are, by the passes of a silence that fail because the external API refuses something, and in which nothing changes, what it
// refuses. The workqueue repeats such a pass less and less often, and nobody but the external API can say that it may succeed now.
func (x *index) refusals(s *history.Silence) map[int]*history.Call {
	refused, changed := map[int]*history.Call{}, map[int]bool{}
	for i := max(s.Call, 0); i < min(s.LastCall, len(x.run.Calls)); i++ {
		switch c := &x.run.Calls[i]; {
		case c.Pass == history.Nobody || x.run.Passes[c.Pass].Err == "":
		case c.Changed && !history.Housekeeping(c.Group, c.Resource):
			changed[c.Pass] = true
		case c.Side == history.External && (c.Err != "" || c.Code >= http.StatusBadRequest):
			refused[c.Pass] = cmp.Or(refused[c.Pass], c)
		}
	}
	maps.DeleteFunc(refused, func(pass int, _ *history.Call) bool { return changed[pass] })
	return refused
}

// isAnnouncement reports whether a call creates an event, except the one about a new leader. Later writes of an
// event are bookkeeping of the recorder.
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
	return strings.TrimSpace(c.Sort() + " " + strings.TrimPrefix(c.Namespace+"/"+c.Name, "/"))
}
