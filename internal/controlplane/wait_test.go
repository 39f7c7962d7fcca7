package controlplane

import (
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/internal/poll"
)

// eventually waits for something that happens in another process and tells nobody.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(poll.Patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}
