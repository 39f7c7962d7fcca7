package corpus

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// TestWatches proves that bugs in what an operator expects of its watches are found by the kinds of
// schedules that are meant for them. After an error or a crash, too, nobody sees what was there meanwhile.
func TestWatches(t *testing.T) {
	others := []fault.Kind{
		fault.Crashes, fault.Faults, fault.Stale, fault.Duplicates, fault.Races, fault.Overtaken, fault.Forgeries, fault.Delays, fault.Breaks,
	}
	tests := map[string]struct {
		bug  Bug
		want []string
		by   []fault.Kind
	}{
		"correct":                  {NoBug, nil, nil},
		"lag of several passes":    {WaitsOnce, []string{"I1", "I3"}, []fault.Kind{fault.Delays}},
		"state that is not seen":   {WaitsForBoot, []string{"I1"}, []fault.Kind{fault.Delays, fault.Breaks, fault.Faults, fault.Crashes}},
		"deletion without a state": {SkipsUnknowns, []string{"I1"}, []fault.Kind{fault.Breaks, fault.Delays}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := keeper(test.bug)
			for _, kind := range test.by {
				if diff := cmp.Diff(test.want, explore(t, s, kind).broken); diff != "" {
					t.Errorf("%q: broken by %s (-want +got):\n%s", test.bug, kind, diff)
				}
			}
			rest := slices.DeleteFunc(slices.Clone(others), func(k fault.Kind) bool { return slices.Contains(test.by, k) })
			if d := exploreWith(t, s, fault.Only(rest...), some()); d.broken != nil {
				t.Errorf("%q: other kinds break %v, want nothing", test.bug, d.broken)
			}
		})
	}
}

// keeper is the story of an Item whose Part a user deletes.
func keeper(bug Bug) fault.Scenario {
	s := story("keeper", SetupKeeper(bug))
	s.ExternalAPI = nil
	s.Actors = []fault.Actor{{Name: "boot", Act: Boot}}
	s.Steps = slices.Insert(s.Steps[:1:1], 1, fault.Step{Name: "delete the part", Do: func(ctx context.Context, w *fault.World) error {
		parts := &PartList{}
		if err := w.Client.List(ctx, parts); err != nil || len(parts.Items) != 1 {
			return err
		}
		return w.Client.Delete(ctx, &parts.Items[0])
	}})
	return s
}
