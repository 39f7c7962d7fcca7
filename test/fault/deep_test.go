package fault

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/fault/scenarios"
)

// waived are invariants that a scenario by itself breaks.
func waived(s fault.Scenario) []fault.Option {
	opts := []fault.Option{fault.Waive(fault.I15, "roles are compared with what all scenarios of an operator need")}
	if s.Name == "cloud-kept" {
		opts = append(opts, fault.Waive(fault.I5, "a process that starts tries again what the API refused"))
	}
	return opts
}

// TestRecoveries disturbs some recoveries from crashes; [TestDeep] disturbs all of them.
func TestRecoveries(t *testing.T) {
	playSome(t, fault.Recoveries, 20, "nats-bucket", "component-hooks")
}

// TestLateEffects lets some writes that timed out take effect later; [TestDeep] plays those of all scenarios.
func TestLateEffects(t *testing.T) {
	playSome(t, fault.LateEffects, 10, "nats-bucket", "component-hooks")
}

// TestLateWrites lets some writes of dead processes arrive late; [TestDeep] plays all of them.
func TestLateWrites(t *testing.T) {
	playSome(t, fault.LateWrites, 10, "nats-recreate", "component-hooks")
}

// TestOldCaches lets a new process begin with old caches; [TestDeep] plays those of all scenarios.
func TestOldCaches(t *testing.T) {
	playSome(t, fault.OldCaches, 10, "component-life", "component-hooks", "nats-invalid", "loop-life")
}

// playSome plays up to 30 schedules of a kind in each of some scenarios. Each must have at least as many as least.
func playSome(t *testing.T, kind fault.Kind, least int, names ...string) {
	t.Helper()
	all := scenarios.All()
	for _, name := range names {
		at := slices.IndexFunc(all, func(s fault.Scenario) bool { return s.Name == name })
		if at < 0 {
			t.Fatalf("there is no scenario %q", name)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := append(waived(all[at]), fault.Only(kind), fault.AtMost(30, kind))
			if r := fault.Run(t, all[at], opts...); r.Schedules[kind] < least {
				t.Errorf("%d schedules of kind %s were played, want %d or more", r.Schedules[kind], kind, least)
			}
		})
	}
}

// TestDeep plays as many schedules as TRIMTAB_SCHEDULES says, over all scenarios: those of all kinds, all
// disturbances of recoveries from crashes, and pairs at random, the same ones each time, for what is left of
// the number. The scenarios share the number and the time equally. TRIMTAB_SEED chooses a random sample of all of
// them instead of the first ones: with another number, another sample.
func TestDeep(t *testing.T) {
	number := os.Getenv("TRIMTAB_SCHEDULES")
	if number == "" {
		t.Skip("TRIMTAB_SCHEDULES says how many schedules to play")
	}
	wanted, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(0)
	if number = os.Getenv("TRIMTAB_SEED"); number != "" {
		if seed, err = strconv.ParseUint(number, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	all := scenarios.All()
	began, played, left := time.Now(), 0, 0 // left by those that have fewer
	for i, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			left += wanted*(i+1)/len(all) - wanted*i/len(all)
			opts := append(waived(s), shareOf(t, s, left, len(all)-i)...)
			for _, n := range fault.Run(t, s, append(opts, fault.Seed(seed))...).Schedules {
				played, left = played+n, left-n
			}
		})
	}
	took := time.Since(began)
	t.Logf("%d schedules in %s, %.1f per second", played, took.Round(time.Second), float64(played)/took.Seconds())
}

// shareOf are the options for a scenario that plays n schedules, with so many that share the time from here on.
func shareOf(t *testing.T, s fault.Scenario, n, sharing int) []fault.Option {
	t.Helper()
	kinds := []fault.Kind{
		fault.Crashes, fault.Faults, fault.Stale, fault.Duplicates, fault.Delays, fault.Breaks, fault.Races, fault.Overtaken,
		fault.Panics, fault.Contention, fault.SlowCalls, fault.LateEffects, fault.OldCaches, fault.Recoveries, fault.Pairs,
	}
	purges := slices.Concat(scenarios.Orders(), scenarios.Handover(), scenarios.Nodes()) // see disturbances
	if !slices.ContainsFunc(purges, func(o fault.Scenario) bool { return o.Name == s.Name }) {
		kinds = append(kinds, fault.Forgeries)
	}
	if s.Name != "cloud-later" { // whose API does not show at once for whom a resource was created: to stop and ask is right
		kinds = append(kinds, fault.LateWrites)
	}
	opts := []fault.Option{fault.Only(kinds...), fault.Unpruned(fault.Alternating), fault.Sample(n), fault.AtMost(n)}
	if deadline, ok := t.Deadline(); ok {
		budget := time.Until(deadline.Add(-time.Minute)) / time.Duration(sharing)
		if budget <= 0 {
			t.Fatal("not played, because the time is over; allow more with -timeout")
		}
		opts = append(opts, fault.Budget(budget))
	}
	return opts
}
