package fault

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/fault/scenarios"
)

// mutant is a bug put into one of our engines, to see whether it is found.
type mutant struct {
	// what is wrong, in words.
	what string
	// file, from the repository's root, in which old becomes mutated. old stands there once.
	file, old, mutated string
	// scenario is the story that must find it, by breaking one of these invariants. I1 stands
	// also for an undisturbed run that does not come to what the story expects.
	scenario   string
	invariants []string
	// quick ones are part of every run of the tests; the others of those with TRIMTAB_DEEP=1.
	quick bool
}

// asMutant makes the test binary play one scenario and tell what it found.
const asMutant = "TRIMTAB_FAULT_SCENARIO"

// found is what a binary with a mutant tells.
type found struct {
	Invariants []string
	Token      string
	Schedules  int
	Took       time.Duration
}

// TestMutants puts one bug after the other into loop and external and wants each to be
// found. TRIMTAB_DEEP=1 takes all of them; -v prints a table with the time each took.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("each mutant is built")
	}
	deep := os.Getenv("TRIMTAB_DEEP") != ""
	var table strings.Builder
	for _, m := range mutants() {
		if m.quick || deep {
			t.Run(strings.ReplaceAll(m.what, " ", "-"), func(t *testing.T) { table.WriteString(m.hunt(t)) })
		}
	}
	t.Logf("bug | scenario | found by | schedules | time\n%s", table.String())
}

// TestMutantsFit wants each mutant's place to be there, so that none is lost unnoticed.
func TestMutantsFit(t *testing.T) {
	t.Parallel()
	if n := len(mutants()); n < 20 {
		t.Errorf("%d mutants; want at least 20", n)
	}
	all := scenarios.All()
	for _, m := range mutants() {
		if _, err := m.source(); err != nil {
			t.Errorf("%s: %v", m.what, err)
		}
		if !slices.ContainsFunc(all, func(s fault.Scenario) bool { return s.Name == m.scenario }) {
			t.Errorf("%s: there is no scenario %q", m.what, m.scenario)
		}
	}
}

// source is the mutated file.
func (m mutant) source() (string, error) {
	b, err := os.ReadFile(filepath.Join("..", "..", m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(b), m.old); n != 1 {
		return "", fmt.Errorf("%s has %d places like this instead of 1; correct the mutant:\n%s", m.file, n, m.old)
	}
	return strings.Replace(string(b), m.old, m.mutated, 1), nil
}

// hunt builds the tests with the mutant and plays its scenario. It returns a line of the
// table.
func (m mutant) hunt(t *testing.T) string {
	t.Helper()
	source, err := m.source()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), m.build(t, source), "-test.run=^TestAsMutant$", "-test.v")
	cmd.Env = append(os.Environ(), asMutant+"="+m.scenario)
	out, err := cmd.CombinedOutput()
	f, ok := told(out)
	switch {
	case !ok && strings.Contains(string(out), "never comes to rest"):
		f = found{Invariants: []string{"I13"}, Token: "undisturbed"}
	case !ok && strings.Contains(string(out), "undisturbed"):
		f = found{Invariants: []string{"I1"}, Token: "undisturbed"}
	case !ok:
		t.Fatalf("%s: %v\n%s", m.what, err, out)
	}
	if !slices.ContainsFunc(m.invariants, func(i string) bool { return slices.Contains(f.Invariants, i) }) {
		t.Errorf("%s: %s found %v by %d schedules; want one of %v", m.what, m.scenario, f.Invariants, f.Schedules, m.invariants)
	}
	return fmt.Sprintf("%s | %s | %s, %s | %d | %s\n", m.what, m.scenario, strings.Join(f.Invariants, " "), f.Token, f.Schedules, f.Took.Round(10*time.Millisecond))
}

// build builds the tests of this package with a mutated file laid over the real one.
func (m mutant) build(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	original, err := filepath.Abs(filepath.Join("..", "..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	mutated, overlay, binary := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "fault.test")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{mutated: []byte(source), overlay: replace} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", binary, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build with the mutant: %v\n%s", err, out)
	}
	return binary
}

const tellMark = "MUTANT "

func told(out []byte) (found, bool) {
	_, rest, ok := strings.Cut(string(out), tellMark)
	if !ok {
		return found{}, false
	}
	line, _, _ := strings.Cut(rest, "\n")
	var f found
	return f, json.Unmarshal([]byte(line), &f) == nil
}

// TestAsMutant is for binaries with a mutant: it plays one scenario, one kind of schedules
// after the other, until something is found.
func TestAsMutant(t *testing.T) {
	name := os.Getenv(asMutant)
	if name == "" {
		t.Skip("only for binaries with a mutant")
	}
	all := scenarios.All()
	i := slices.IndexFunc(all, func(s fault.Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no scenario %q", name)
	}
	var f found
	start := time.Now()
	for _, kind := range []fault.Kind{fault.Crashes, fault.Faults, fault.Stale, fault.Races} {
		r := fault.Explore(t, all[i], fault.Only(kind))
		for _, n := range r.Schedules {
			f.Schedules += n
		}
		if len(r.Findings) == 0 {
			continue
		}
		f.Token = r.Findings[0].Token
		for _, finding := range r.Findings {
			for _, v := range finding.Violations {
				f.Invariants = append(f.Invariants, v.Invariant)
			}
		}
		break
	}
	slices.Sort(f.Invariants)
	f.Invariants, f.Took = slices.Compact(f.Invariants), time.Since(start)
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(tellMark + string(b))
}
