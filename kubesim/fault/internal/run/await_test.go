package run

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwait proves that a run is given up if nothing happens in it, and not because it takes long: on a busy machine
// all do.
func TestAwait(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		acts int // one every 50 s
		ends bool
	}{
		"slow":           {acts: 10, ends: true},
		"slow, and hung": {acts: 3},
		"hung at once":   {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var acts atomic.Int64
				results := make(chan string, 1)
				go func() {
					for range test.acts {
						<-time.After(50 * time.Second)
						acts.Add(1)
					}
					if test.ends {
						results <- "done"
					}
				}()
				began := time.Now()
				result, ok := await(results, time.Minute, acts.Load)
				if ok != test.ends || ok != (result == "done") {
					t.Errorf("got %q, %t", result, ok)
				}
				if took, most := time.Since(began), time.Duration(test.acts)*50*time.Second+2*time.Minute; took > most {
					t.Errorf("it took %v, want %v at most", took, most)
				}
			})
		})
	}
}
