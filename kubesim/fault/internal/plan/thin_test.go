package plan

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// TestThin proves that a kind of call that an operator seldom makes gets as many faults as one that it makes all the time.
func TestThin(t *testing.T) {
	t.Parallel()
	var calls []history.Call
	for i := range 100 {
		c := history.Call{Index: i, Verb: "patch", Resource: "configmaps", Name: "a", Write: true}
		switch i {
		case 40:
			c.Verb = "create"
		case 50:
			c.Subresource = "status"
		case 60, 61:
			c = history.Call{Index: i, Side: history.External, Verb: "write", What: "mkdir a", Write: true}
		case 62:
			c = history.Call{Index: i, Side: history.External, Verb: "write", What: "mkdir b", Write: true}
		case 63:
			c = history.Call{Index: i, Side: history.External, Verb: "write", What: "rmdir a", Write: true}
		}
		calls = append(calls, c)
	}
	p := &Plan{Reference: run.Result{Run: &history.Run{Calls: calls}}, Pruned: map[Rule]int{}}
	all := p.Faults()
	tests := map[string]struct {
		why  string
		most int
		want map[string]int // by the kind of call
	}{
		"least":    {"fewer would leave out a kind of call", 1, map[string]int{"patch": 1, "create": 1, "status": 1, "mkdir": 1, "rmdir": 1}},
		"one each": {"each kind of call is another piece of code", 5, map[string]int{"patch": 1, "create": 1, "status": 1, "mkdir": 1, "rmdir": 1}},
		"more":     {"what is left goes to all", 20, map[string]int{"patch": 4, "create": 4, "status": 4, "mkdir": 4, "rmdir": 4}},
		"too few":  {"of those that have no more there are all", 100, map[string]int{"patch": 65, "create": 5, "status": 6, "mkdir": 18, "rmdir": 6}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			clear(p.Pruned)
			got, ways := map[string]int{}, map[string]bool{}
			for _, j := range p.Thin(all, tt.most) {
				d := j.Schedule[0]
				kind := map[int]string{40: "create", 50: "status", 60: "mkdir", 61: "mkdir", 62: "mkdir", 63: "rmdir"}[d.At]
				if kind == "" {
					kind = "patch"
				}
				got[kind]++
				ways[d.Kind] = true
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
			if len(ways) < 3 {
				t.Errorf("they are disturbed in no other ways than %v", maps.Keys(ways))
			}
			if p.Pruned[Thinned] != len(all)-max(tt.most, len(got)) {
				t.Errorf("%d of %d were left out", p.Pruned[Thinned], len(all))
			}
		})
	}
	if n := len(p.Thin([]run.Job{single(schedule.Race, 1), single(schedule.Race, 2), single(schedule.Race, 3)}, 2)); n != 2 {
		t.Errorf("%d races are left of 3, want 2", n)
	}
}
