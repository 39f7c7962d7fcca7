package engine

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

const modelSeed = 20260102

func variants() []variant {
	return []variant{
		{name: "name and mark", identity: decide.IdentityDeterministic},
		{name: "name and later mark", identity: decide.IdentityDeterministic, marker: true},
		{name: "name, marked later", identity: decide.IdentityDeterministic, marker: true, late: true},
		{name: "name given twice", identity: decide.IdentityDeterministic, twofold: true},
		{name: "name and lies", identity: decide.IdentityDeterministic, lies: true},
		{name: "name without mark and lies", identity: decide.IdentityDeterministic, unmarked: true, lies: true},
		{name: "name without mark", identity: decide.IdentityDeterministic, unmarked: true},
		{name: "token", identity: decide.IdentityToken},
		{name: "mark", identity: decide.IdentityMark},
		{name: "name and mark, returned", identity: decide.IdentityDeterministic, answers: true},
		{name: "name and mark, remembered", identity: decide.IdentityDeterministic, answers: true, consistent: true},
		{name: "name and mark, repeated", identity: decide.IdentityDeterministic, answers: true, echoes: true},
		{name: "name and mark, said to be gone", identity: decide.IdentityDeterministic, answers: true, falseGone: true},
		{name: "name and mark, remembered, said to be gone", identity: decide.IdentityDeterministic, answers: true, consistent: true, falseGone: true},
		{name: "name and mark, a node", identity: decide.IdentityDeterministic, node: true},
		{name: "name without mark, a node", identity: decide.IdentityDeterministic, unmarked: true, node: true},
		{name: "name, marked later, a node", identity: decide.IdentityDeterministic, marker: true, late: true, node: true},
		{name: "name and mark, returned, a node", identity: decide.IdentityDeterministic, answers: true, falseGone: true, node: true},
		{name: "none", identity: decide.IdentityNone, unmarked: true},
	}
}

// TestModelWalk walks every kind of API at random. TRIMTAB_DEEP=1 walks a hundred times as far,
// TRIMTAB_SEED=n takes another path.
func TestModelWalk(t *testing.T) {
	steps := 220_000
	if os.Getenv("TRIMTAB_DEEP") == "1" {
		steps *= 100
	}
	seed := uint64(modelSeed)
	if s := os.Getenv("TRIMTAB_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	total, rows := 0, [33]int{}
	start := time.Now()
	for i, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			w := newModel(v, mutant{}, seed+uint64(i))
			w.walk(int(float64(steps) * walked))
			if w.broken != "" {
				t.Fatalf("seed %d, step %d: %s\n%s", seed, w.steps, w.broken, story(v, mutant{}, seed+uint64(i), steps))
			}
			total += w.steps
			for r, n := range w.rows {
				rows[r] += n
			}
		})
	}
	t.Logf("seed %d: %d steps in %s; decisions by row: %v", seed, total, time.Since(start).Round(time.Millisecond), rows)
}

// story repeats a walk and returns what happened before its end.
func story(v variant, m mutant, seed uint64, steps int) string {
	w := newModel(v, m, seed)
	w.tracing = true
	w.walk(steps)
	return strings.Join(w.story, "\n")
}
