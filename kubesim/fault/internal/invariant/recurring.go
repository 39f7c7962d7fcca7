package invariant

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// How often an operator does something at rest that is on no time limit, such as a TTL, and how far apart that is: what it
// does at one moment may take a few seconds.
const (
	recurs = 3
	apart  = 10 * time.Second
)

// Recurring describes the kinds of which the operator creates or deletes objects again and again in a silence of an undisturbed
// run. How many of these there are depends on the moment, so whoever acts there later finds others.
func Recurring(r *history.Run) (all []string) {
	for _, s := range r.Silences {
		moments := map[doing][]time.Time{}
		for i := range r.Changes {
			c := &r.Changes[i]
			does := done(c)
			if does == (doing{}) || c.At.Before(s.From) || c.At.After(s.To) {
				continue
			}
			if at := moments[does]; len(at) == 0 || c.At.Sub(at[len(at)-1]) >= apart {
				moments[does] = append(at, c.At)
			}
		}
		for does, at := range moments {
			if len(at) >= recurs {
				all = append(all, does.again())
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// doing is a verb and a kind, the zero value anything else that an operator does.
type doing struct{ verb, kind string }

func done(c *history.Change) doing {
	if c.By != operator || history.Housekeeping(c.Group, c.Resource) {
		return doing{}
	}
	kind := schema.GroupResource{Group: c.Group, Resource: c.Resource}.String()
	switch {
	case c.Before == nil:
		return doing{"creates", kind}
	case c.After == nil || c.Before.GetDeletionTimestamp() == nil && c.After.GetDeletionTimestamp() != nil:
		return doing{"deletes", kind}
	}
	return doing{}
}

func (d doing) again() string {
	return fmt.Sprintf("the operator %s %s again and again while nothing else happens, so what others find depends on the moment at which they act, and differences in "+
		"%s may be false alarms; let it be due rarely, and wait for that in a step such as fault.Wait(time.Hour)", d.verb, d.kind, d.kind)
}
