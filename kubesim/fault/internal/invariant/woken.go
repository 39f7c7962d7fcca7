package invariant

import (
	"fmt"
	"slices"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// waking is what the operator makes of an object, and with which call, when it is started again at rest.
type waking struct {
	history.Aged
	call int
}

// woken lists the objects that the operator changes at once when it is started again at rest after a step: it had not
// noticed before what it sees then.
func (x *index) woken(step int) (all []waking) {
	s := &x.run.Steps[step]
	for _, a := range s.Woken {
		aged := slices.ContainsFunc(s.Aged, func(o history.Aged) bool { return o.Key == a.Key })
		if _, was := s.State.Objects[a.Key]; !was || a.Gone || aged {
			continue
		}
		if call := x.wokenBy(a.Key, step); call != history.Nobody {
			a.Woken = true
			all = append(all, waking{a, call})
		}
	}
	return all
}

// wokenBy is the call with which a process that was started at rest after a step changes an object at once,
// [history.Nobody] if it does not.
func (x *index) wokenBy(key string, step int) int {
	if step >= len(x.run.Silences) || x.run.Silences[step].Restarted == history.Nobody {
		return history.Nobody
	}
	for i := range x.run.Changes {
		c := &x.run.Changes[i]
		if c.Step != step || c.By != operator || c.Call == history.Nobody || c.Before == nil || c.After == nil || state.Key(c.Group, c.Resource, c.Namespace, c.Name) != key {
			continue
		}
		call := &x.run.Calls[c.Call]
		if call.Process >= x.run.Silences[step].Restarted && call.At.Sub(x.run.Processes[call.Process].Started) < instant {
			return c.Call
		}
	}
	return history.Nobody
}

// Woken lists for each step what is as right there as in the undisturbed run, because that would be so if only somebody had
// woken the operator in this step or in one before. watched is an undisturbed run with a restart after each step.
func Woken(watched, undisturbed *history.Run) [][]history.Aged {
	x := newIndex(watched)
	all := make([][]history.Aged, len(watched.Steps))
	awake := map[string]bool{}
	for i, s := range watched.Steps {
		for key := range awake {
			want, is := undisturbed.Steps[i].State.Objects[key]
			if sheet, both := s.State.Objects[key]; is && both && sheet != want {
				all[i] = append(all[i], history.Aged{Key: key, Sheet: sheet, Woken: true})
			}
		}
		for _, a := range x.woken(i) {
			all[i], awake[a.Key] = append(all[i], a.Aged), true
		}
	}
	return all
}

// Asleep is I1 for an undisturbed run with a restart after each step: what the operator does not notice before it is started
// again.
func Asleep(watched *history.Run) (found []history.Violation) {
	x := newIndex(watched)
	told := map[string]bool{}
	for i, s := range watched.Steps {
		for _, a := range x.woken(i) {
			one := func(sheet string) history.State { return history.State{Objects: map[string]string{a.Key: sheet}} }
			for _, d := range state.Differences(one(s.State.Objects[a.Key]), one(a.Sheet)) {
				if told[d.Subject] {
					continue
				}
				told[d.Subject] = true
				found = append(found, history.Violation{
					Invariant: "I1", Title: "ends as without the disturbance", Call: a.call, Subjects: []string{"until a restart: " + d.Subject},
					Message: fmt.Sprintf("undisturbed, step %q leaves %s of %s at %s until the operator is restarted, which makes it %s: "+
						"nothing wakes the operator before, or a new process decides otherwise", s.Name, d.Path, d.Of, d.Was, d.Is),
				})
			}
		}
	}
	return found
}
