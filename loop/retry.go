package loop

import "time"

// Retry is the policy after failures: exponential back-off, per object. A successful pass resets it;
// writes of the loop do not.
type Retry struct {
	// Initial is the first delay. Zero means one second.
	Initial time.Duration
	// Multiplier is the factor by which the delay grows with each retry. Zero means 2; 1 means that
	// the delay does not grow.
	Multiplier float64
	// Max caps the delay. Zero means 10 minutes.
	Max time.Duration
	// Attempts is the number of retries after a first failure. Zero means no limit; a negative
	// value means no retry.
	Attempts int
	// Jitter prolongs each delay by up to this fraction of it. Zero means 0.1; a negative value
	// means none.
	Jitter float64
	// Next is a policy of your own, in place of Initial, Multiplier, Max and Jitter. It returns the delay before the
	// retry with that number, from 1, after err, or false if err is not to be retried before the next event. A delay
	// of less than 100 ms means that. It is called after a failure for which the author names no delay, and must return
	// at once. Nil means that there is none, and so does a panic.
	Next func(retry int, err error) (time.Duration, bool)
}

// RetryInfo says which retry a pass is.
type RetryInfo struct {
	// Attempt is the number of the retry, from 1. It is 0 if the pass is not a retry.
	Attempt int
	// Last reports whether no retry follows if this pass fails. It knows of [Retry.Attempts] and not of [Retry.Next].
	Last bool
}
