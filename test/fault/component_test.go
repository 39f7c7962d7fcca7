package fault

import (
	"os"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/fault/scenarios"
)

// TestComponent plays an operator of components whose renderer can hang.
func TestComponent(t *testing.T) {
	explore(t, scenarios.Component(), fault.Hangs, fault.Absences, fault.Replacements)
}

// TestHooks plays a component with all hooks.
func TestHooks(t *testing.T) { explore(t, scenarios.Hooks(), fault.Hangs, fault.Replacements) }

// disturbances are the kinds of schedules for scenarios in which a removed status makes a difference: what
// was purged is not known any more, and is created again. TRIMTAB_DEEP=1 plays all there are.
func disturbances(more ...fault.Kind) []fault.Option {
	all := append([]fault.Kind{fault.Crashes, fault.Faults, fault.Stale, fault.Duplicates, fault.Delays, fault.Breaks, fault.Races, fault.Overtaken, fault.Panics, fault.Replacements, fault.Contention, fault.SlowCalls}, more...)
	if os.Getenv("TRIMTAB_DEEP") != "" {
		return []fault.Option{fault.Only(all...)}
	}
	return []fault.Option{
		fault.Only(all...), fault.AtMost(mostFaults, fault.Faults), fault.AtMost(mostRaces, fault.Races),
		fault.AtMost(mostDelays, fault.Delays), fault.AtMost(mostBreaks, fault.Breaks), fault.AtMost(mostContended, fault.Contention),
		fault.AtMost(mostSlow, fault.SlowCalls),
	}
}

// TestOrders plays a component with waves, whose dependents others hold.
func TestOrders(t *testing.T) { exploreBy(t, scenarios.Orders(), disturbances(fault.Hangs)...) }

// TestHandover plays an object that moves between components. A renderer that hangs for longer than the time
// of grace does not get the object in time, so none does.
func TestHandover(t *testing.T) { exploreBy(t, scenarios.Handover(), disturbances()...) }

// TestNodes plays a component with an external resource.
func TestNodes(t *testing.T) { exploreBy(t, scenarios.Nodes(), disturbances(fault.Hangs)...) }

// TestGuestbook plays the guestbook sample. TestGuestbook of the sample itself runs its whole command.
func TestGuestbook(t *testing.T) {
	exploreBy(t, scenarios.Guestbook(os.DirFS("../../samples/guestbook/crds")), disturbances(fault.Hangs)...)
}
