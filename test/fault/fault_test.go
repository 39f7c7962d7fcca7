package fault

import (
	"os"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/fault/scenarios"
)

// TestNATS plays the NATS sample.
func TestNATS(t *testing.T) { explore(t, scenarios.NATS()) }

// explore plays an operator's scenarios and counts the schedules.
func explore(t *testing.T, all []fault.Scenario) {
	t.Helper()
	exploreBy(t, all, kinds()...)
}

// exploreBy is [explore] with options of its own.
func exploreBy(t *testing.T, all []fault.Scenario, opts ...fault.Option) {
	t.Helper()
	total, took := map[fault.Kind]int{}, time.Duration(0)
	for _, r := range fault.Suite(t, all, opts...) {
		for kind, n := range r.Schedules {
			total[kind] += n
		}
		took += r.Took
	}
	t.Logf("%d scenarios, schedules %v in %s", len(all), total, took.Round(time.Second))
}

// kinds are the kinds of schedules that our samples are played with: all that are played unless
// others are named. TRIMTAB_DEEP=1 forges statuses in each of the ways at each moment, not in turn.
func kinds() []fault.Option {
	opts := []fault.Option{fault.Only(
		fault.Crashes, fault.Faults, fault.Stale, fault.Duplicates, fault.Races, fault.Overtaken, fault.Forgeries, fault.Panics,
	)}
	if os.Getenv("TRIMTAB_DEEP") != "" {
		opts = append(opts, fault.Unpruned(fault.Alternating))
	}
	return opts
}

// TestLoop plays a controller on the bare loop.
func TestLoop(t *testing.T) { explore(t, scenarios.Loop()) }

// TestFolder plays the folder sample, on folders of the real disk.
func TestFolder(t *testing.T) {
	explore(t, scenarios.Folder(os.DirFS("../../samples/folder/crds"), t.TempDir()))
}

// TestCloud plays an API that takes two calls to make a thing.
func TestCloud(t *testing.T) { explore(t, scenarios.Cloud()) }

// TestOutages plays an API that throttles and is down. Its three objects make many calls, so only a
// sample of the other faults is played besides crashes, in pairs. Its roles are those of TestCloud.
func TestOutages(t *testing.T) {
	exploreBy(t, scenarios.Outages(), fault.Only(fault.Crashes, fault.Pairs), fault.Sample(60), fault.Waive("I15"))
}
