package invariant_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/invariant"
)

// TestRecurring proves that the note is about an operator which is due again and again, not about one with a time limit or about others.
func TestRecurring(t *testing.T) {
	const note = " again and again while nothing else happens, so what others find depends on the moment at which they act, and differences in jobs.batch may be false alarms; " +
		"let it be due rarely, and wait for that in a step such as fault.Wait(time.Hour)"
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	job := &unstructured.Unstructured{Object: map[string]any{}}
	made := func(by string, at ...time.Duration) (all []history.Change) {
		for _, d := range at {
			all = append(all, history.Change{At: began.Add(d), Group: "batch", Resource: "jobs", After: job, By: by})
		}
		return all
	}
	gone := func(at ...time.Duration) []history.Change {
		all := made("operator", at...)
		for i := range all {
			all[i].Before, all[i].After = job, nil
		}
		return all
	}
	events := made("operator", time.Minute, 2*time.Minute, 3*time.Minute)
	for i := range events {
		events[i].Group, events[i].Resource = "events.k8s.io", "events"
	}
	const minute = time.Minute
	for name, c := range map[string]struct {
		changes []history.Change
		want    []string
	}{
		"each minute":             {made("operator", minute, 2*minute, 3*minute), []string{"the operator creates jobs.batch" + note}},
		"and removes old ones":    {append(made("operator", minute, 2*minute, 3*minute), gone(minute, 2*minute, 3*minute)...), []string{"the operator creates jobs.batch" + note, "the operator deletes jobs.batch" + note}},
		"events":                  {events, nil},
		"a time limit":            {gone(10 * minute), nil},
		"many at one moment":      {made("operator", minute, minute+time.Second, minute+2*time.Second), nil},
		"by somebody else":        {made("job controller", minute, 2*minute, 3*minute), nil},
		"before all was at rest":  {made("operator", -3*minute, -2*minute, -minute), nil},
		"the same objects, again": {append(made("operator", minute), gone(2*minute)...), nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &history.Run{Silences: []history.Silence{{From: began, To: began.Add(15 * minute)}}, Changes: c.changes}
			if diff := cmp.Diff(c.want, invariant.Recurring(r)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
