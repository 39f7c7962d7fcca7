package fault

import (
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/fault/scenarios"
)

// TestNATS plays the NATS sample.
func TestNATS(t *testing.T) { explore(t, scenarios.NATS(), usual(fault.Hangs)) }

// explore plays an operator's scenarios and counts the schedules. TRIMTAB_DEEP=1 plays all that there are of the kinds. The
// short form plays the crashes of each scenario, a fault for each kind of call and two broken watches, upon which an operator
// lists. In every fourth scenario it plays a sample of a third of the other kinds, always the same; which third, its name decides.
// [TestRaces] and [TestAbsences] play theirs, and [TestFound] what has found bugs.
func explore(t *testing.T, all []fault.Scenario, kinds []fault.Kind, opts ...fault.Option) {
	t.Helper()
	if os.Getenv("TRIMTAB_DEEP") != "" || flag.Lookup("fault.replay").Value.String() != "" {
		suite(t, all, append(opts, fault.Only(kinds...), fault.Unpruned(fault.Alternating))...)
		return
	}
	first := []fault.Kind{fault.Crashes, fault.Faults, fault.Breaks}
	others := fault.Waive(fault.I15, "the roles are compared with what crashes and faults of all scenarios need")
	if testing.Short() { // for make check
		suite(t, all, append(opts, fault.Only(first...), fault.AtMost(4, first...), others)...)
		return
	}
	suite(t, all, append(slices.Clone(opts), fault.Only(first...), fault.AtMost(mostFaults, fault.Faults), fault.AtMost(mostOthers, fault.Breaks))...)
	t.Run("sample", func(t *testing.T) {
		elsewhere := append(first, fault.Races, fault.Absences)
		rest := slices.DeleteFunc(slices.Clone(kinds), func(k fault.Kind) bool { return slices.Contains(elsewhere, k) })
		for i := 0; i < len(all); i += 4 {
			var third []fault.Kind
			for n := len(all[i].Name) % 3; n < len(rest); n += 3 {
				third = append(third, rest[n])
			}
			suite(t, all[i:i+1], append(slices.Clone(opts), fault.Only(third...), fault.AtMost(mostOthers, third...), others)...)
		}
	})
}

// suite is [fault.Suite], and counts the schedules.
func suite(t *testing.T, all []fault.Scenario, opts ...fault.Option) {
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

const (
	// mostFaults is how many faults the short form plays in each scenario that has no more kinds of calls: one for each of them,
	// and another one for the first ones, which are watches. One of these two makes the operator list, for which it needs a role.
	mostFaults = 12
	// mostOthers is how many schedules of each other kind it plays, spread over the run.
	mostOthers = 2
)

// usual are the kinds of schedules that our samples are played with: all that are played unless
// others are named, and more.
func usual(more ...fault.Kind) []fault.Kind { return append(lossless(fault.Forgeries), more...) }

// TestLoop plays a controller on the bare loop, which waits for its author's code for as long as that
// takes.
func TestLoop(t *testing.T) { explore(t, scenarios.Loop(), usual()) }

// TestFolder plays the folder sample, on folders of the real disk.
func TestFolder(t *testing.T) {
	explore(t, scenarios.Folder(os.DirFS("../../samples/folder/crds"), t.TempDir()), usual(fault.Hangs))
}

// TestCloud plays an API that takes two calls to make a thing.
func TestCloud(t *testing.T) { explore(t, scenarios.Cloud(), usual()) }

// TestOperated plays an API that makes every change in an operation.
func TestOperated(t *testing.T) { explore(t, scenarios.Operated(), usual(fault.Hangs)) }

// TestVerified plays a ResourceManager of package verify, whose API does not show what it is given.
func TestVerified(t *testing.T) { explore(t, scenarios.Verified(), usual(fault.Hangs)) }

// TestAssigned plays an API that assigns the ids.
func TestAssigned(t *testing.T) { explore(t, scenarios.Assigned(), usual(fault.Hangs)) }

// TestAnswers plays an API that answers changes with the state, and two accounts of it. The roles are
// those of TestCloud.
func TestAnswers(t *testing.T) { explore(t, scenarios.Answers(), usual()) }

// TestKept plays that API where it keeps what it says is deleted.
func TestKept(t *testing.T) {
	explore(t, scenarios.Kept(), usual(),
		fault.Waive(fault.I5, "a process that starts tries again what the API refused"),
		fault.Waive(fault.I15, "the roles are those of TestCloud"))
}

// TestOutages plays an API that throttles and is down. Its three objects make many calls, so only a
// sample of the other faults is played besides crashes, in pairs: 20 of the 60 of the long form.
func TestOutages(t *testing.T) {
	pairs := 20
	if os.Getenv("TRIMTAB_DEEP") != "" {
		pairs = 60
	}
	suite(t, scenarios.Outages(), fault.Only(fault.Crashes, fault.Pairs), fault.Sample(pairs),
		fault.Waive(fault.I15, "the roles are those of TestCloud"))
}
