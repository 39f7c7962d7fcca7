package corpus

import (
	"os"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// item returns the Item that stories here are about.
func item() *Item {
	return &Item{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: Spec{Size: 1, Text: "one"}}
}

// story is the common scenario: create, change, delete.
func story(name string, operator func(ctrl.Manager, *fault.Env) error) fault.Scenario {
	i := item()
	return fault.Scenario{
		Name:        name,
		CRDs:        os.DirFS("crds"),
		AddToScheme: AddToScheme,
		Outside:     NewCloud,
		Operator:    operator,
		Steps: []fault.Step{
			fault.Create(i),
			fault.Merge(i, `{"spec":{"size":2}}`),
			fault.Delete(i),
		},
	}
}

// detection is what it took to find something.
type detection struct {
	// broken are the invariants that broke, sorted.
	broken []string
	// kind is that of the first schedule that broke one, "none" for the undisturbed run.
	first     string
	schedules int
	took      time.Duration
}

// explore plays a scenario and sums up what came of it.
func explore(t *testing.T, s fault.Scenario, kinds ...fault.Kind) detection {
	t.Helper()
	r := fault.Explore(t, s, fault.Only(kinds...))
	d := detection{took: r.Took, first: "-"}
	for _, n := range r.Schedules {
		d.schedules += n
	}
	for _, f := range r.Findings {
		for _, v := range f.Violations {
			d.broken = append(d.broken, v.Invariant)
		}
	}
	if len(r.Findings) > 0 {
		d.first = r.Findings[0].Token
	}
	slices.Sort(d.broken)
	d.broken = slices.Compact(d.broken)
	t.Logf("%-28s broken %v, first %s, %d findings in %d schedules, %s", s.Name, d.broken, d.first, len(r.Findings), d.schedules, d.took.Round(time.Millisecond))
	if testing.Verbose() && len(r.Findings) > 0 {
		t.Log(r.Findings[0].Text)
	}
	return d
}
