package corpus

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// TestSlowCalls proves that an operator which does not expect its token to end during a reconcile is found by calls that
// take long, and by nothing else.
func TestSlowCalls(t *testing.T) {
	for name, test := range map[string]struct {
		bug  Bug
		want []string
	}{
		"correct":   {NoBug, nil},
		"old token": {TrustsSession, []string{"I1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := story("session "+name, SetupSession(test.bug))
			fixedSize(&s)
			d := explore(t, s, fault.SlowCalls)
			if diff := cmp.Diff(test.want, d.broken); diff != "" || d.schedules < 10 {
				t.Errorf("%q: broken by %d schedules (-want +got):\n%s", test.bug, d.schedules, diff)
			}
			if d := exploreWith(t, s, some()); d.broken != nil {
				t.Errorf("%q: the usual kinds break %v, want nothing", test.bug, d.broken)
			}
		})
	}
}
