package fault

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/fault/scenarios"
)

// everything is all scenarios, those that need a disk included.
func everything(dir string) []fault.Scenario {
	chart, err := scenarios.Chart(os.DirFS(root + "/samples/chart"))
	if err != nil {
		panic(err)
	}
	return slices.Concat(
		chart, scenarios.All(), scenarios.Folder(os.DirFS(root+"/samples/folder/crds"), dir),
		scenarios.Guestbook(os.DirFS(root+"/samples/guestbook/crds")))
}

// names are those of all scenarios.
var names = sync.OnceValue(func() (all []string) {
	for _, s := range everything("") {
		all = append(all, s.Name)
	}
	return all
})

// waived are invariants that a scenario by itself breaks.
func waived(s fault.Scenario) []fault.Option {
	opts := []fault.Option{fault.Waive(fault.I15, "roles are compared with what all scenarios of an operator need")}
	if s.Name == "cloud-kept" {
		opts = append(opts, fault.Waive(fault.I5, "a process that starts tries again what the API refused"))
	}
	return opts
}

// TestDeep plays as many schedules as TRIMTAB_SCHEDULES says, over all scenarios: those of all kinds
// except [unfit], all disturbances of recoveries from crashes, and pairs at random, the same ones each time, for what is
// left of the number. The scenarios share the number and the time equally; what short ones do not need goes to those that
// follow. TRIMTAB_SEED chooses a random sample of all of them instead of the first ones: with another number, another sample.
func TestDeep(t *testing.T) {
	all := everything(t.TempDir())
	wanted := numberIn(t, "TRIMTAB_SCHEDULES")
	switch {
	case flag.Lookup("fault.replay").Value.String() != "":
		wanted = len(all) // none is too few to be asked
	case wanted == 0:
		t.Skip("TRIMTAB_SCHEDULES says how many schedules to play")
	}
	seed := numberIn(t, "TRIMTAB_SEED")
	slices.SortStableFunc(all, func(a, b fault.Scenario) int { return cmp.Compare(len(a.Steps), len(b.Steps)) }) // short ones first
	began, asked, played, more := time.Now(), 0, 0, 0
	for i, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			own, later := wanted*(i+1)/len(all)-wanted*i/len(all), len(all)-i
			share := own + (asked-played)/later
			if asked += own; share == 0 {
				return // to play at most 0 is to play all
			}
			n, rest := playDeep(t, s, share, later, uint64(seed))
			played, more = played+n, more+rest
		})
	}
	took := time.Since(began)
	t.Logf("%d schedules in %s, %.1f per second", played, took.Round(time.Second), float64(played)/took.Seconds())
	if wrong := shortfall(asked, played, more); wrong != "" {
		t.Error(wrong)
	}
}

// playDeep plays so many schedules of a scenario, with so many scenarios that share the time from here on. It returns how many were
// played, and how many more there are. What is [relaxed] counts for the schedules of that kind alone.
func playDeep(t *testing.T, s fault.Scenario, share, sharing int, seed uint64) (played, more int) {
	t.Helper()
	kinds := kindsFor(s.Name)
	all := []fault.Option{fault.Only(kinds...), fault.Unpruned(fault.Alternating), fault.Seed(seed)}
	for _, r := range relaxed {
		if r.scenario != s.Name {
			continue
		}
		eased := s
		eased.Operator.Ignored = slices.Concat(s.Operator.Ignored, r.ignored)
		opts := slices.Concat(waived(s), all, r.waived, budgetOf(t, sharing), []fault.Option{fault.Sample(1), fault.AtMost(share - played)})
		for _, k := range kinds {
			if k != r.kind { // it is named because recoveries are disturbed in this way, too
				opts = append(opts, fault.AtMost(1, k))
			}
		}
		report := fault.Run(t, eased, opts...)
		played, more = played+report.Played(), more+report.Pruned[fault.OutOfTime]
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(k fault.Kind) bool { return k == r.kind })
		if played >= share {
			return played, more
		}
	}
	all[0] = fault.Only(kinds...)
	rest := []fault.Option{fault.Sample(share - played), fault.AtMost(share - played)}
	report := fault.Run(t, s, slices.Concat(waived(s), all, budgetOf(t, sharing), rest)...)
	return played + report.Played(), more + report.Pruned[fault.Thinned] + report.Pruned[fault.OutOfTime]
}

// relaxed is what schedules of one kind break in some scenarios by design.
var relaxed = []struct {
	scenario string
	kind     fault.Kind
	ignored  []string
	waived   []fault.Option
	why      string
}{
	{
		scenario: "component-hooks", kind: fault.Recoveries,
		waived: []fault.Option{fault.Waive(fault.I10, "its dependents are replaced as a whole, with what others wrote")},
		why:    "only a process that recovers updates a dependent there",
	},
	{
		scenario: "component-orders", kind: fault.Recoveries, ignored: []string{"status.processingSince"},
		why: "a user deletes the component before a killed process has recorded that its spec was applied, so nobody will",
	},
	{
		scenario: "guestbook", kind: fault.Recoveries, ignored: []string{"status.lastAppliedAt"},
		why: "the same, with a user who changes it",
	},
	{
		scenario: "component-handover", kind: fault.Forgeries, ignored: []string{"status.lastAppliedAt"},
		why: "only the status knows when a component that waits was last applied",
	},
}

// numberIn is the number in an environment variable; 0 if it is not set.
func numberIn(t *testing.T, variable string) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q is no number; give one, or 0", variable, text)
	}
	return n
}

// shortfall says that fewer schedules were played than asked for; empty if there are no more.
func shortfall(asked, played, more int) string {
	if played >= asked || more == 0 {
		return ""
	}
	return fmt.Sprintf("%d schedules were played instead of %d, and there are %d more; allow more time with -timeout", played, asked, more)
}

// TestShortfall proves that a deep form that plays too little is noticed.
func TestShortfall(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why                 string
		asked, played, more int
		want                string
	}{
		"as many":     {"the rest was not asked for", 100, 100, 7, ""},
		"no more":     {"all that there are", 100, 60, 0, ""},
		"out of time": {"nobody sees what was not played", 100, 60, 40, "60 schedules were played instead of 100, and there are 40 more; allow more time with -timeout"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := shortfall(tt.asked, tt.played, tt.more); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.why, got, tt.want)
			}
		})
	}
}

// unfit are scenarios that are not played with a kind of schedules, and why. TestDeep plays all others with all kinds.
var unfit = []struct {
	kind      fault.Kind
	scenarios []string
	why       string
}{
	{fault.Forgeries, []string{"component-orders"}, "what was purged is known only from the status: if that is removed, it is created again"},
	{fault.Forgeries, []string{"guestbook"}, "only the status knows the phase of a dependent that was applied and is not ready, and since when"},
	{fault.LateWrites, []string{"cloud-later"}, "its API does not show at once for whom a resource was created: to stop and ask is right"},
	{fault.Hangs, []string{"loop-life", "loop-needs", "loop-election"}, "the bare loop waits for its author's code for as long as that takes"},
	{fault.Hangs, []string{"component-handover"}, "a renderer that hangs for longer than the time of grace does not get the object in time, so none does"},
	{fault.Absences, []string{"nats-invalid", "nats-access", "component-orders", "component-handover"}, "TestUnrecorded plays them, without comparing some fields"},
}

// unrecorded are scenarios in which a user acts, before the next process is there, so that it cannot find out any more
// what the one before has applied; that is what these fields say.
var unrecorded = []struct {
	scenario string
	fields   []string
	without  string // a race whose end rightly depends on what the process had done when it was killed
	why      string
}{
	{
		"nats-invalid",
		[]string{"status.appliedGeneration", "status.conditions"},
		"",
		"the spec that was applied is followed by one that cannot be; that it works for the former was not recorded",
	},
	{
		"nats-access",
		[]string{"status.appliedGeneration", "status.conditions"},
		"",
		"the same: the next spec is not permitted",
	},
	{
		"component-orders",
		[]string{"status.inventory.digest", "status.processingDigest", "status.processingSince"},
		scenarios.KeepSecond,
		"the component is deleted; what was applied of its last spec was not recorded, and is not applied any more",
	},
	{
		"component-handover",
		[]string{"status.appliedGeneration", "status.inventory.digest", "status.inventory.processingSince", "status.processingSince"},
		"",
		"as in component-orders",
	},
}

// TestUnrecorded plays crashes after which users act first, in scenarios where the status then says what it said before
// the crash. All but that is compared.
func TestUnrecorded(t *testing.T) {
	if os.Getenv("TRIMTAB_SCHEDULES") == "" {
		t.Skip("TRIMTAB_SCHEDULES says how many schedules to play")
	}
	all := scenarios.All()
	for _, u := range unrecorded {
		t.Run(u.scenario, func(t *testing.T) {
			t.Parallel()
			s := all[slices.IndexFunc(all, func(s fault.Scenario) bool { return s.Name == u.scenario })]
			s.Operator.Ignored = slices.Concat(s.Operator.Ignored, u.fields)
			s.Races = slices.DeleteFunc(slices.Clone(s.Races), func(r fault.Step) bool { return r.Name == u.without })
			if r := fault.Run(t, s, append(waived(s), fault.Only(fault.Absences))...); r.Schedules[fault.Absences] < 50 {
				t.Errorf("%d schedules were played, want 50 or more: %s", r.Schedules[fault.Absences], u.why)
			}
		})
	}
}

// kindsFor are the kinds that TestDeep plays a scenario with.
func kindsFor(scenario string) []fault.Kind {
	kinds := []fault.Kind{
		fault.Crashes, fault.Faults, fault.Stale, fault.Duplicates, fault.Delays, fault.Breaks, fault.Races, fault.Overtaken, fault.Forgeries,
		fault.Panics, fault.Hangs, fault.Absences, fault.Replacements, fault.Contention, fault.SlowCalls, fault.LateEffects, fault.LateWrites, fault.Freezes,
		fault.OldCaches, fault.Drift, fault.Recoveries, fault.Pairs,
	}
	for _, u := range unfit {
		if slices.Contains(u.scenarios, scenario) {
			kinds = slices.DeleteFunc(kinds, func(k fault.Kind) bool { return k == u.kind })
		}
	}
	return kinds
}

// TestUnfit wants the scenarios that are left out, relaxed or sampled to be there.
func TestUnfit(t *testing.T) {
	t.Parallel()
	for _, r := range relaxed {
		if !slices.Contains(names(), r.scenario) {
			t.Errorf("%s of %q, which is no scenario, are relaxed: %s", r.kind, r.scenario, r.why)
		}
	}
	for _, s := range sampled {
		for _, name := range s.scenarios {
			if !slices.Contains(names(), name) {
				t.Errorf("%s are sampled in %q, which is no scenario", s.kind, name)
			}
		}
	}
	for _, u := range unfit {
		for _, name := range u.scenarios {
			if !slices.Contains(names(), name) {
				t.Errorf("%s are not played with %q, which is no scenario: %s", u.kind, name, u.why)
			}
		}
	}
}

// budgetOf is the time of a scenario, with so many that share it from here on.
func budgetOf(t *testing.T, sharing int) []fault.Option {
	t.Helper()
	deadline, ok := t.Deadline()
	if !ok {
		return nil
	}
	budget := time.Until(deadline.Add(-time.Minute)) / time.Duration(sharing)
	if budget <= 0 {
		t.Fatal("not played, because the time is over; allow more with -timeout")
	}
	return []fault.Option{fault.Budget(budget)}
}
