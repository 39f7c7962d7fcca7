package fault

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// TestEvents proves that the record of a run says which event was disturbed.
func TestEvents(t *testing.T) {
	e, w := prepared(t, toyLife(""))
	for _, kind := range []string{schedule.Late, schedule.Gone, schedule.Twice} {
		var got []string
		for at := range e.reference.Learned.Deliveries {
			r := w.Play(t, run.Job{Schedule: schedule.Schedule{{Kind: kind, At: at}}, Like: e.reference.Run})
			if len(r.Run.Faults) > 0 {
				got = append(got, r.Run.Faults[0].Event)
			}
		}
		const a = " of configmaps default/a"
		want := []string{"the creation" + a, "the change" + a, "the change" + a, "the change" + a, "the change" + a, "the change" + a, "the deletion" + a}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the events (-want +got):\n%s", kind, diff)
		}
	}
}
