package loop

import (
	"testing"
	"time"
)

// TestWindow: within any time of the limit, no more passes begin than it allows.
func TestWindow(t *testing.T) {
	start := time.Now()
	l := RateLimit{Passes: 3, Per: 10 * time.Second}
	var w window
	var began []time.Duration
	for now := time.Duration(0); now < time.Minute; now += 100 * time.Millisecond { // somebody wants a pass all the time
		wait := w.wait(start.Add(now), l)
		if wait > 0 {
			if last := began[len(began)-3] + l.Per; now+wait != last {
				t.Fatalf("at %s the wait is %s, until %s; want until %s", now, wait, now+wait, last)
			}
			continue
		}
		w = w.began(start.Add(now), l)
		began = append(began, now)
	}
	if len(w) != 3 {
		t.Errorf("%d times are remembered, want 3", len(w))
	}
	if len(began) != 18 {
		t.Errorf("%d passes within a minute, want 3 in each 10 s", len(began))
	}
	for i := range began[3:] {
		if apart := began[i+3] - began[i]; apart < l.Per {
			t.Errorf("pass %d began %s after pass %d", i+3, apart, i)
		}
	}
	if w := window(nil).began(start, RateLimit{}); w != nil || w.wait(start, RateLimit{}) != 0 {
		t.Error("there is a limit where none is set")
	}
}
