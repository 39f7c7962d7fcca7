// Package poll waits, in tests, for what cannot be watched.
package poll

import "time"

// Until calls ok every 10 ms until it answers true, and reports whether it did within a
// minute. The limit only bounds a test that fails: it is long enough for a busy machine.
func Until(ok func() bool) bool {
	deadline := time.After(time.Minute)
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
