package fault

import (
	"os"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/fault/scenarios"
)

// TestNATS plays the NATS sample: of what is not a crash, half as many schedules as of others, because much is the same in its
// sixteen scenarios.
func TestNATS(t *testing.T) {
	opts := kinds(fault.Hangs)
	if os.Getenv("TRIMTAB_DEEP") == "" {
		opts = append(opts,
			fault.AtMost(mostFaults/2, fault.Faults), fault.AtMost(mostRaces/2, fault.Races), fault.AtMost(mostForgeries/2, fault.Forgeries),
			fault.AtMost(mostPanics/2, fault.Panics), fault.AtMost(mostHangs/2, fault.Hangs))
	}
	exploreBy(t, scenarios.NATS(), opts...)
}

// explore plays an operator's scenarios and counts the schedules.
func explore(t *testing.T, all []fault.Scenario, more ...fault.Kind) {
	t.Helper()
	exploreBy(t, all, kinds(more...)...)
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

// So many schedules of a kind are played in each scenario, spread over its run. There is no limit to crashes.
const (
	mostFaults    = 48
	mostRaces     = 30
	mostForgeries = 30
	mostPanics    = 16
	mostHangs     = 12
	mostDelays    = 4
	mostBreaks    = 4
	mostContended = 3
	mostSlow      = 2
)

// kinds are the kinds of schedules that our samples are played with: all that are played unless
// others are named, and more. TRIMTAB_DEEP=1 plays all there are, where the short form forges statuses
// in turn and plays a part of what is not a crash.
func kinds(more ...fault.Kind) []fault.Option {
	all := append([]fault.Kind{
		fault.Crashes, fault.Faults, fault.Stale, fault.Duplicates, fault.Delays, fault.Breaks, fault.Races, fault.Overtaken, fault.Forgeries, fault.Panics,
		fault.Contention, fault.SlowCalls,
	}, more...)
	if os.Getenv("TRIMTAB_DEEP") != "" {
		return []fault.Option{fault.Only(all...), fault.Unpruned(fault.Alternating)}
	}
	return []fault.Option{
		fault.Only(all...),
		fault.AtMost(mostFaults, fault.Faults), fault.AtMost(mostRaces, fault.Races), fault.AtMost(mostForgeries, fault.Forgeries),
		fault.AtMost(mostPanics, fault.Panics), fault.AtMost(mostHangs, fault.Hangs),
		fault.AtMost(mostDelays, fault.Delays), fault.AtMost(mostBreaks, fault.Breaks), fault.AtMost(mostContended, fault.Contention),
		fault.AtMost(mostSlow, fault.SlowCalls),
	}
}

// TestLoop plays a controller on the bare loop, which waits for its author's code for as long as that
// takes.
func TestLoop(t *testing.T) { explore(t, scenarios.Loop()) }

// TestFolder plays the folder sample, on folders of the real disk.
func TestFolder(t *testing.T) {
	explore(t, scenarios.Folder(os.DirFS("../../samples/folder/crds"), t.TempDir()), fault.Hangs)
}

// TestCloud plays an API that takes two calls to make a thing.
func TestCloud(t *testing.T) { explore(t, scenarios.Cloud()) }

// TestAnswers plays an API that answers changes with the state, and two accounts of it. The roles are
// those of TestCloud.
func TestAnswers(t *testing.T) { explore(t, scenarios.Answers()) }

// TestKept plays that API where it keeps what it says is deleted.
func TestKept(t *testing.T) {
	exploreBy(t, scenarios.Kept(), append(kinds(),
		fault.Waive(fault.I5, "a process that starts tries again what the API refused"),
		fault.Waive(fault.I15, "the roles are those of TestCloud"))...)
}

// TestOutages plays an API that throttles and is down. Its three objects make many calls, so only a
// sample of the other faults is played besides crashes, in pairs.
func TestOutages(t *testing.T) {
	exploreBy(t, scenarios.Outages(), fault.Only(fault.Crashes, fault.Pairs), fault.Sample(60),
		fault.Waive(fault.I15, "the roles are those of TestCloud"))
}
