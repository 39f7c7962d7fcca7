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
// Both play what is in [sampled], and what has found [bugs].
func explore(t *testing.T, all []fault.Scenario, kinds []fault.Kind, opts ...fault.Option) {
	t.Helper()
	if os.Getenv("TRIMTAB_DEEP") != "" || flag.Lookup("fault.replay").Value.String() != "" {
		opts = append(opts, fault.Only(kinds...), fault.Unpruned(fault.Alternating))
		suite(t, all, append(opts, samples(kinds)...)...)
		return
	}
	first := []fault.Kind{fault.Crashes, fault.Faults, fault.Breaks}
	opts = append(opts, fault.Only(first...))
	if testing.Short() { // for make check
		suite(t, all, append(opts, fault.AtMost(4, first...), fault.Waive(fault.I15, "roles are compared with what crashes and faults of all scenarios need"))...)
		return
	}
	elsewhere := append(slices.Clone(first), fault.Races, fault.Absences)
	rest := slices.DeleteFunc(slices.Clone(kinds), func(k fault.Kind) bool { return slices.Contains(elsewhere, k) })
	for i := 0; i < len(all); i += 4 {
		var third []fault.Kind
		for n := len(all[i].Name) % 3; n < len(rest); n += 3 {
			third = append(third, rest[n])
		}
		opts = append(opts, fault.For(all[i].Name, fault.Only(third...), fault.AtMost(mostOthers, third...)))
	}
	opts = append(opts, fault.AtMost(mostFaults, fault.Faults), fault.AtMost(mostOthers, fault.Breaks))
	suite(t, all, append(opts, samples(first)...)...)
}

// suite is [fault.Suite] with the schedules that have found bugs, and counts the schedules.
func suite(t *testing.T, all []fault.Scenario, opts ...fault.Option) {
	t.Helper()
	for _, s := range all {
		sorted, back := foundIn(s.Name)
		for _, name := range sorted {
			opts = append(opts, fault.Replay(back[name].token))
		}
	}
	opts = append(opts, fault.Replay(harmless()...))
	total, took := map[fault.Kind]int{}, time.Duration(0)
	for _, r := range fault.Suite(t, all, opts...) {
		for kind, n := range r.Schedules {
			total[kind] += n
		}
		took += r.Took
		if len(r.Schedules) == 0 {
			continue // -fault.replay names another one
		}
		for _, wrong := range wrongReplays(r) {
			t.Errorf("%s: %s", r.Scenario, wrong)
		}
		for _, s := range sampled {
			if n := r.Schedules[s.kind]; n < leastSampled && slices.Contains(s.scenarios, r.Scenario) && !testing.Short() {
				t.Errorf("%s: %d schedules of kind %s were played, want %d or more", r.Scenario, n, s.kind, leastSampled)
			}
		}
	}
	t.Logf("%d scenarios, schedules %v in %s", len(all), total, took.Round(time.Second))
}

// sampled are kinds that are played in some scenarios alone, twelve schedules of each, because most of them ask for runs to
// plan by or to compare with. [TestDeep] plays those of all scenarios.
var sampled = []struct {
	kind      fault.Kind
	scenarios []string
}{
	{fault.Races, []string{"loop-life", "nats-bucket", "component-hooks", "cloud-later"}},
	{fault.Absences, []string{"nats-bucket", "component-hooks"}},
	{fault.Recoveries, []string{"nats-bucket", "component-hooks"}},
	{fault.LateEffects, []string{"nats-bucket", "component-hooks"}},
	{fault.LateWrites, []string{"nats-recreate", "component-hooks"}},
	{fault.Freezes, []string{"loop-election", "component-hooks"}},
	{fault.OldCaches, []string{"component-life", "component-hooks", "nats-invalid", "loop-life"}},
	{fault.Drift, []string{"component-life", "component-orders", "loop-needs"}},
}

const mostSampled, leastSampled = 12, 7

// samples are the options that play what is [sampled], except kinds that are played anyway.
func samples(anyway []fault.Kind) (opts []fault.Option) {
	for _, s := range sampled {
		for _, name := range s.scenarios {
			if !slices.Contains(anyway, s.kind) {
				opts = append(opts, fault.For(name, fault.Only(s.kind), fault.AtMost(mostSampled, s.kind)))
			}
		}
	}
	return opts
}

const (
	// mostFaults is how many faults the short form plays in each scenario that has no more kinds of calls: one for each of them,
	// and another one for the first ones, which are watches. One of these two makes the operator list, for which it needs a role.
	mostFaults = 10
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
	explore(t, scenarios.Folder(os.DirFS(root+"/samples/folder/crds"), t.TempDir()), usual(fault.Hangs))
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
