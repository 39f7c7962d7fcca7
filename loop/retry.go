package loop

import "time"

// Retry is the policy after failures: exponential, per object. Own writes of the loop do
// not reset it; success does.
type Retry struct {
	// Initial is the first delay. Zero means one second.
	Initial time.Duration
	// Multiplier is the growth from delay to delay. Zero means 2; 1 is a linear policy.
	Multiplier float64
	// Max caps the delay. Zero means 10 minutes.
	Max time.Duration
	// Attempts is how many retries follow a first failure. Zero means no limit; less than
	// zero means none.
	Attempts int
	// Jitter spreads each delay by up to this fraction more. Zero means 0.1; less than
	// zero means none.
	Jitter float64
}

// RetryInfo tells a pass where in the ladder of retries it stands.
type RetryInfo struct {
	// Attempt is 0 unless this pass is a retry after a failure.
	Attempt int
	// Last is true when no retry follows if this pass fails.
	Last bool
}
