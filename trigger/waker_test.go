package trigger

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// TestWaker: every controller that runs is woken, and one whose context has ended is not.
func TestWaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attached := 0
		w := Waker{OnAttach: func(context.Context) { attached++ }}
		woken := map[string][]wake{}
		attach := func(name string) context.CancelFunc {
			ctx, stop := context.WithCancel(t.Context())
			w.attach(ctx, func(who wake) { woken[name] = append(woken[name], who) })
			return stop
		}
		w.All(0) // no controller is attached yet
		stopFirst := attach("first")
		stopSecond := attach("second")
		defer stopSecond()
		key := types.NamespacedName{Namespace: "n", Name: "a"}
		w.Objects(key)
		w.Objects() // no object
		stopFirst()
		synctest.Wait()
		w.Later(key, time.Minute)
		w.All(time.Second)

		one := []types.NamespacedName{key}
		want := map[string][]wake{
			"first":  {{keys: one}},
			"second": {{keys: one}, {keys: one, after: time.Minute}, {all: true, within: time.Second}},
		}
		if diff := cmp.Diff(want, woken, cmp.AllowUnexported(wake{})); diff != "" {
			t.Errorf("woken (-want +got):\n%s", diff)
		}
		if attached != 2 {
			t.Errorf("OnAttach was called %d times, want once for each of two controllers", attached)
		}
	})
}
