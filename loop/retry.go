package loop

import "time"

// Retry is the policy after failures: exponential back-off, per object. A successful pass resets it;
// writes of the loop do not.
type Retry struct {
	// Initial is the first delay. Zero means one second.
	Initial time.Duration
	// Multiplier is the growth from delay to delay. Zero means 2; 1 is a linear policy.
	Multiplier float64
	// Max caps the delay. Zero means 10 minutes.
	Max time.Duration
	// Attempts is the number of retries after a first failure. Zero means no limit; less than
	// zero means no retry.
	Attempts int
	// Jitter prolongs each delay by up to this fraction of it. Zero means 0.1; less than zero
	// means none.
	Jitter float64
}

// RetryInfo says which retry a pass is.
type RetryInfo struct {
	// Attempt is the number of the retry; 0 if the pass is not one.
	Attempt int
	// Last reports whether no retry follows if this pass fails.
	Last bool
}
