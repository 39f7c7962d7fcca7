package simcloud

import (
	"strings"
	"time"
)

// Fault is how the cloud fails, for some calls. The zero value matches every call and does nothing.
type Fault struct {
	// Method and Prefix, of the path, say which calls it is for. Empty means any.
	Method string `json:"method,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	// Times is for how many calls. Zero means until it is healed.
	Times int `json:"times,omitempty"`
	// Status is what to answer instead of doing it; zero means to do it. RetryAfter asks to wait.
	Status     int           `json:"status,omitempty"`
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	// Delay is how long the answer takes.
	Delay time.Duration `json:"delay,omitempty"`
	// Hang: there is no answer at all, and nothing is done.
	Hang bool `json:"hang,omitempty"`
	// Lose: it is done, and the connection breaks before the answer.
	Lose bool `json:"lose,omitempty"`
}

// Inject adds a fault. Of several that match a call, the first one counts.
func (c *Cloud) Inject(f Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, &f)
}

// Heal removes all faults.
func (c *Cloud) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = nil
}

// fault returns the fault of a call; the zero value if there is none.
func (c *Cloud) fault(method, path string) Fault {
	for i, f := range c.faults {
		if f.Method != "" && f.Method != method || !strings.HasPrefix(path, f.Prefix) {
			continue
		}
		found := *f
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				c.faults = append(c.faults[:i:i], c.faults[i+1:]...)
			}
		}
		return found
	}
	return Fault{}
}

// exceeds counts a call and reports whether there were too many in this second.
func (c *Cloud) exceeds() bool {
	now := time.Now().Truncate(time.Second)
	if !now.Equal(c.second) {
		c.second, c.served = now, 0
	}
	c.served++
	return c.options.Quota > 0 && c.served > c.options.Quota
}
