// Package poll helps tests to wait for conditions that cannot be watched.
package poll

import "time"

// Patience is how long a test waits for what should happen soon. It is long enough for a busy machine; only a failing test waits so
// long.
const Patience = 2 * time.Minute

// Until calls ok every 10 ms until it returns true, and reports whether it did within Patience.
func Until(ok func() bool) bool {
	deadline := time.After(Patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			return false
		}
	}
	return true
}
