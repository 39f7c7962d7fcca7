package fault

import (
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/fault/scenarios"
)

// TestComponent plays an operator of components whose renderer can hang.
func TestComponent(t *testing.T) { explore(t, scenarios.Component(), fault.Hangs) }

// TestHooks plays a component with all hooks.
func TestHooks(t *testing.T) { explore(t, scenarios.Hooks(), fault.Hangs) }
