package hours

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/api"
)

// ops are the operations that the vendor was asked for, in order.
func (v *vendor) ops() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]string, len(v.calls))
	for i, c := range v.calls {
		out[i] = c.op
	}
	return strings.Join(out, " ")
}

// TestAnswers: what an API returns with its answers is not read again, nor before a change a moment
// later if reads are never behind.
func TestAnswers(t *testing.T) {
	tests := map[string]struct {
		why     string
		answers bool
		grace   time.Duration
		pause   time.Duration // between the changes of the user
		want    string
	}{
		"returned, consistent":          {"one read in a life", true, -1, time.Second, "observe create update delete"},
		"returned, consistent and slow": {"what was returned long ago may be another's by now", true, -1, time.Minute, "observe create observe update observe delete"},
		"returned, reads may be behind": {"a read before each change", true, 0, time.Second, "observe create observe update observe delete"},
		"not returned":                  {"a read before and after each change", false, -1, time.Second, "observe create observe observe update observe observe delete observe"},
		"not returned, behind":          {"a read before and after each change", false, 0, time.Minute, "observe create observe observe update observe observe delete observe"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inHours(t, func(o *options) { o.CreateGrace, o.DriftInterval = test.grace, -1 }, func(w *simulation) {
				w.vendor.answers = test.answers
				w.create("a", "")
				w.pass(test.pause)
				w.setReadOnly("a")
				w.pass(test.pause)
				if f := w.get("a"); !is(f, api.ConditionReady) || !w.vendor.items["a"].readOnly {
					t.Fatalf("conditions %+v, item %+v", f.Status.Conditions, w.vendor.items["a"])
				}
				must(t, w.client.Delete(w.t.Context(), w.get("a")))
				w.pass(time.Minute)
				if got := w.vendor.ops(); got != test.want {
					t.Errorf("%s:\ngot  %s\nwant %s", test.why, got, test.want)
				}
			})
		})
	}
}

// TestAnswersThatRepeat: an API that returns what it was asked for, and has not done it, is found
// out at the next drift check, and not updated for ever.
func TestAnswersThatRepeat(t *testing.T) {
	inHours(t, func(o *options) { o.DriftInterval = time.Minute }, func(w *simulation) {
		w.vendor.answers, w.vendor.repeats = true, true
		w.create("a", "")
		w.pass(time.Second)
		w.setReadOnly("a")
		w.pass(time.Hour)
		if got := len(w.vendor.had("update", time.Time{})); got != 3 {
			t.Errorf("%d updates in an hour, want 3", got)
		}
		if c := condition(w.get("a"), api.ConditionFailed); c.Reason != "NotConverging" {
			t.Errorf("conditions %+v", w.get("a").Status.Conditions)
		}
	})
}

// TestDriftThatComesBack: what others undo again and again is corrected each time, though the API
// returned each time that it was.
func TestDriftThatComesBack(t *testing.T) {
	inHours(t, func(o *options) { o.DriftInterval = time.Minute }, func(w *simulation) {
		w.vendor.answers = true
		w.create("a", "")
		w.pass(time.Second)
		for range 20 {
			w.vendor.with(func() { w.vendor.items["a"].readOnly = true })
			w.pass(70 * time.Second)
			if f := w.get("a"); w.vendor.items["a"].readOnly || !is(f, api.ConditionReady) {
				t.Fatalf("item %+v, conditions %+v", w.vendor.items["a"], f.Status.Conditions)
			}
		}
	})
}
