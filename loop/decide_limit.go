package loop

import "time"

// window are the times at which the last passes over one object began, oldest first. The caller supplies the time.
type window []time.Time

// wait returns how long the next pass has to wait.
func (w window) wait(now time.Time, l RateLimit) time.Duration {
	if l.Passes <= 0 || len(w) < l.Passes {
		return 0
	}
	return max(w[len(w)-l.Passes].Add(l.Per).Sub(now), 0)
}

// began returns the window with one more pass.
func (w window) began(now time.Time, l RateLimit) window {
	if l.Passes <= 0 {
		return nil
	}
	w = append(w, now)
	return w[max(len(w)-l.Passes, 0):]
}
