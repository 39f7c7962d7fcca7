package fault

import "testing"

// TestGarbagePercent proves that a large operator does not need five times the memory that it uses.
func TestGarbagePercent(t *testing.T) {
	t.Parallel()
	for inUse, want := range map[uint64]int{0: 800, 100 << 20: 800, 128 << 20: 800, 1 << 30: 100, 4 << 30: 50} {
		if got := garbagePercent(inUse); got != want {
			t.Errorf("%d MB are in use, so garbage may be %d %% of that, want %d %%", inUse>>20, got, want)
		}
	}
}
