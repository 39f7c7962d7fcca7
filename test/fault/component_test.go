package fault

import (
	"os"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/fault/scenarios"
)

// TestComponent plays an operator of components whose renderer can hang.
func TestComponent(t *testing.T) {
	explore(t, scenarios.Component(), usual(fault.Hangs, fault.Absences, fault.Replacements))
}

// TestHooks plays a component with all hooks.
func TestHooks(t *testing.T) { explore(t, scenarios.Hooks(), usual(fault.Hangs, fault.Replacements)) }

// lossless are the kinds of schedules for scenarios in which a removed status makes a difference: what
// was purged is not known any more, and is created again.
func lossless(more ...fault.Kind) []fault.Kind {
	return append([]fault.Kind{
		fault.Crashes, fault.Faults, fault.Stale, fault.Duplicates, fault.Delays, fault.Breaks, fault.Races, fault.Overtaken,
		fault.Panics, fault.Contention, fault.SlowCalls,
	}, more...)
}

// TestOrders plays a component with waves, whose dependents others hold.
func TestOrders(t *testing.T) {
	explore(t, scenarios.Orders(), lossless(fault.Replacements, fault.Hangs))
}

// TestHandover plays an object that moves between components. A renderer that hangs for longer than the time
// of grace does not get the object in time, so none does.
func TestHandover(t *testing.T) { explore(t, scenarios.Handover(), lossless(fault.Replacements)) }

// TestNodes plays a component with an external resource.
func TestNodes(t *testing.T) {
	explore(t, scenarios.Nodes(), lossless(fault.Replacements, fault.Hangs))
}

// TestGuestbook plays the guestbook sample. TestGuestbook of the sample itself runs its whole command.
func TestGuestbook(t *testing.T) {
	explore(t, scenarios.Guestbook(os.DirFS(root+"/samples/guestbook/crds")), lossless(fault.Replacements, fault.Hangs))
}

// TestChart plays the sample with a chart. TestChart of the sample itself runs its whole command.
func TestChart(t *testing.T) {
	all, err := scenarios.Chart(os.DirFS(root + "/samples/chart"))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("TRIMTAB_DEEP") == "" { // it has 15 dependents and 52 kinds of calls; others are about one thing each
		suite(t, all, fault.Only(fault.Crashes), fault.AtMost(20, fault.Crashes), fault.Waive(fault.I15, "make deep plays what needs the roles"))
		return
	}
	explore(t, all, lossless(fault.Replacements, fault.Hangs))
}
