package spread

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Objects with like names, and the waits of one object, fill every tenth of the range as
// chance would: 1,000 of 10,000 each, with a deviation of 30.
func TestShareIsEven(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why  string
		draw func(i int) float64
	}{
		"objects": {"made together, visited together", func(i int) float64 {
			return Share(types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("orders-%d", i)}, 1)
		}},
		"waits": {"retried together, once", func(i int) float64 {
			return Share(types.NamespacedName{Namespace: "default", Name: "orders"}, i)
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tenths [10]int
			for i := range 10_000 {
				share := tc.draw(i)
				if share < 0 || share >= 1 {
					t.Fatalf("share %d is %g; want one in [0, 1)", i, share)
				}
				tenths[int(share*10)]++
			}
			for i, n := range tenths {
				if n < 850 || n > 1150 {
					t.Errorf("%s: %d shares in tenth %d; want about 1000", tc.why, n, i)
				}
			}
		})
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	low, high := time.Hour, time.Duration(0)
	for i := range 1000 {
		key := types.NamespacedName{Name: fmt.Sprint(i)}
		d := Around(10*time.Minute, key)
		if again := Around(10*time.Minute, key); again != d {
			t.Fatalf("around 10m for %s: %s and then %s; want the same", key, d, again)
		}
		low, high = min(low, d), max(high, d)
	}
	if low < 9*time.Minute || low > 9*time.Minute+10*time.Second || high >= 11*time.Minute || high < 11*time.Minute-10*time.Second {
		t.Errorf("around 10m: from %s to %s; want nearly 9m to nearly 11m", low, high)
	}
}
