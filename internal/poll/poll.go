// Package poll helps tests to wait for conditions that cannot be watched.
package poll

import "time"

// Until calls ok every 10 ms until it returns true, and reports whether it did within a minute. The
// limit is long enough for a busy machine; only a failing test reaches it.
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
