package looptest_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
)

// cellar is a place outside of the cluster with a barrel for each Probe.
type cellar struct {
	mu      sync.Mutex
	barrels map[string]string
}

func (c *cellar) put(name, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.barrels[name] = what; what == "" {
		delete(c.barrels, name)
	}
}

func (c *cellar) all() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.barrels)
}

// filling keeps a barrel for each Probe.
func filling() looptest.Subject {
	c := &cellar{barrels: map[string]string{}}
	author := tanks{
		reconcile: func(_ context.Context, r *probeRun) loop.Outcome {
			c.put(r.Obj.Name, fmt.Sprint(r.Obj.Spec.Size, " l"))
			r.Obj.Status.Note = "filled"
			return loop.Done()
		},
		cleanup: func(r *probeRun) loop.CleanupOutcome {
			c.put(r.Obj.Name, "")
			return loop.CleanedUp()
		},
	}
	return looptest.Subject{Process: author.controller, External: c.all}
}

// TestCrashSweep: a controller whose every step can be repeated ends the same wherever it was killed.
func TestCrashSweep(t *testing.T) {
	t.Parallel()
	looptest.CrashSweep(t, looptest.Sweep{
		New: filling, Cluster: cluster(),
		Versions: []client.Object{tank(), tank(func(p *probe.Probe) { p.Spec.Size = 2 })},
	})
}
