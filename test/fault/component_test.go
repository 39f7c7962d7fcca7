package fault

import (
	"testing"

	"github.com/trimtab-dev/trimtab/test/fault/scenarios"
)

// TestComponent plays an operator of components.
func TestComponent(t *testing.T) { explore(t, scenarios.Component()) }
