package loop

import (
	"math"
	"time"
)

// ladder holds which retry one object is at. The caller supplies the time.
//
// Invariant: 0 <= attempts, and attempts <= the policy's limit if there is one.
type ladder struct {
	// attempts is the number of the retry that is armed or under way.
	attempts int
	// retryAt is when the armed retry is due; zero when none is armed.
	retryAt time.Time
	// exhausted is true from the failure of the last retry to the next success.
	exhausted bool
	// repeats counts consecutive outcomes that asked to come again.
	repeats int
	// events grows with each event; seen is its value when the last pass started.
	events, seen uint64
}

// event notes that something happened to the object.
func (l *ladder) event() { l.events++ }

// start opens a pass. A pass that an event caused is no retry: the armed retry stays.
func (l *ladder) start(now time.Time, p Retry) RetryInfo {
	byEvent := l.events > l.seen
	l.seen = l.events
	if !byEvent && !l.retryAt.IsZero() && !now.Before(l.retryAt) {
		l.retryAt = time.Time{}
	}
	return RetryInfo{Attempt: l.attempts, Last: l.spent(p)}
}

// succeeded forgets failures and whatever was armed.
func (l *ladder) succeeded() {
	l.attempts, l.retryAt, l.exhausted, l.repeats = 0, time.Time{}, false, 0
}

// waiting drops the armed retry: an event will come. Attempts so far still count.
func (l *ladder) waiting() { l.retryAt, l.repeats = time.Time{}, 0 }

// again returns the delay before a pass that asked to be repeated.
func (l *ladder) again(p Retry) time.Duration {
	l.repeats++
	return min(time.Duration(float64(100*time.Millisecond)*math.Pow(2, float64(min(l.repeats-1, 30)))), p.max())
}

// failed says when to try again; false means not without an event. own, if positive,
// replaces the policy's delay. share, in [0, 1), spreads the delay before retry n.
func (l *ladder) failed(now time.Time, p Retry, own time.Duration, share func(n int) float64) (time.Duration, bool) {
	l.repeats = 0
	switch {
	case l.events > l.seen: // something happened meanwhile: the queue holds it already
		return 0, true
	case l.retryAt.After(now):
		return l.retryAt.Sub(now), true
	case l.exhausted || l.spent(p):
		l.exhausted, l.retryAt = true, time.Time{}
		return 0, false
	}
	l.attempts++
	wait := own
	if wait <= 0 {
		wait = p.delay(l.attempts, share(l.attempts))
	}
	l.retryAt = now.Add(wait)
	return wait, true
}

// refused drops the armed retry, because the author wants none before the next event. It reports whether one came
// meanwhile, which the queue holds already.
func (l *ladder) refused() bool {
	l.repeats, l.retryAt = 0, time.Time{}
	return l.events > l.seen
}

// spent reports whether no retry follows a failure of this pass.
func (l *ladder) spent(p Retry) bool {
	return p.Attempts < 0 || (p.Attempts > 0 && l.attempts >= p.Attempts)
}

// delay is the wait before retry n, from 1. share, in [0, 1), is how much of the jitter it
// gets.
func (p Retry) delay(n int, share float64) time.Duration {
	multiplier := p.Multiplier
	if multiplier <= 0 {
		multiplier = 2
	}
	jitter := p.Jitter
	if jitter == 0 {
		jitter = 0.1
	}
	base := float64(p.initial()) * math.Pow(multiplier, float64(min(n-1, 64)))
	return time.Duration(min(base, float64(p.max())) * (1 + max(jitter, 0)*share))
}

func (p Retry) initial() time.Duration {
	if p.Initial <= 0 {
		return time.Second
	}
	return p.Initial
}

func (p Retry) max() time.Duration {
	if p.Max <= 0 {
		return 10 * time.Minute
	}
	return p.Max
}
