package engine

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// commonsKinds returns the kinds of API. Without marks nothing distinguishes clusters, so there is
// only one then.
func commonsKinds() []commonsKind {
	return []commonsKind{
		{name: "marked later too", marker: true, clusters: 2},
		{name: "marked at creation alone", clusters: 1},
		{name: "unmarked", unmarked: true, clusters: 1},
	}
}

const commonsSeed = 20260107

// TestNobodyTakesWhatIsNotHis walks at random through what tenants can do to each other with
// copies, restores, annotations and forged records, in two clusters that may disappear, with
// operators that die and move to another endpoint. No object may change, adopt or delete a
// resource of another living object, or leave its own behind, and every stuck object has a way
// out. TRIMTAB_DEEP=1 walks a million steps for each kind of API.
func TestNobodyTakesWhatIsNotHis(t *testing.T) {
	steps := 30_000
	if os.Getenv("TRIMTAB_DEEP") == "1" {
		steps = 1_000_000
	}
	for i, k := range commonsKinds() {
		for _, policy := range []bool{true, false} {
			name := k.name + ", records can be forged"
			if policy {
				name = k.name + ", records are the operator's"
			}
			t.Run(name, func(t *testing.T) {
				start := time.Now()
				w := newCommons(k, commonsMutant{}, policy, commonsSeed+uint64(i))
				w.walk(int(float64(steps) * walked))
				if w.broken != "" {
					again := newCommons(k, commonsMutant{}, policy, commonsSeed+uint64(i))
					again.tracing = true
					again.walk(steps)
					t.Fatalf("step %d: %s\n%s", w.steps, w.broken, strings.Join(again.story, "\n"))
				}
				t.Logf("%d steps in %s; stuck for a while: %v", w.steps, time.Since(start).Round(time.Millisecond), w.stops)
			})
		}
	}
}

// TestCommonsTeeth restores each former rule, which the walk must find.
func TestCommonsTeeth(t *testing.T) {
	if walked < 1 {
		t.Skip("a short walk does not find every mutant; run it without -race")
	}
	tests := map[string]struct {
		why string
		api string // the only kind of API in which it is searched for; empty means any
		m   commonsMutant
	}{
		"a record that was copied counts":         {"the copy is stuck, or takes the original's thing", "", commonsMutant{trustsCopies: true}},
		"a record tells what was taken over":      {"a forged one takes a living object's thing", "marked later too", commonsMutant{trustsAdopted: true}},
		"marks do not name the cluster":           {"a copied namespace takes the first cluster's things", "", commonsMutant{blindToClusters: true}},
		"nobody asks who else stands for it":      {"two objects have one thing", "", commonsMutant{noClaims: true}},
		"what is taken over gets no mark":         {"two clusters have one thing", "", commonsMutant{noMarks: true}},
		"annotations decide alone":                {"a tenant takes the superuser's role", "", commonsMutant{noLimits: true}},
		"a record tells what id the API assigned": {"a forged one deletes what nobody marked", "marked at creation alone", commonsMutant{trustsGiven: true}},
		"who wishes comes before who had":         {"what is lost is made by somebody else", "", commonsMutant{wishesFirst: true}},
		"an operator does not know where it is":   {"it lets go of what is elsewhere", "", commonsMutant{noEndpoints: true}},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			for i, k := range commonsKinds() {
				if test.api != "" && test.api != k.name {
					continue
				}
				for _, policy := range []bool{false, true} { // where records can be forged, more shows
					w := newCommons(k, test.m, policy, commonsSeed+uint64(i))
					if w.walk(200_000); w.broken != "" {
						t.Logf("%s, step %d: %s", k.name, w.steps, w.broken)
						return
					}
				}
			}
			t.Errorf("no walk noticed it; %s", test.why)
		})
	}
}
