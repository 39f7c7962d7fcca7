package fault

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	// token plays the schedule that a hunt found it by; empty is the undisturbed run.
	token string
	// telling: it is played in each run of the tests, not only in the long form.
	telling bool
}

// asMutant makes the test binary play one scenario and tell what it found.
const asMutant = "TRIMTAB_FAULT_SCENARIO"

// undisturbed is what the explorer calls the run with which all others are compared. One that
// goes wrong ends the exploration.
const undisturbed = "undisturbed"

// found is what a binary with a mutant tells.
type found struct {
	Invariants []string
	Token      string
	Schedules  int
	Took       time.Duration
}

// TestMutants puts one bug after the other into loop and external, plays the schedule that is
// known to show it, and wants the bug to be found, and nothing without it. The short form does so with five of them, which break
// different promises and are found by different kinds of schedules. TRIMTAB_DEEP=1 takes all, plays their schedules, and then
// looks for each in all schedules; -v prints a table with the time each took.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("the mutants are built")
	}
	all, deep := mutants(), os.Getenv("TRIMTAB_DEEP") != ""
	if !deep {
		all = slices.DeleteFunc(all, func(m mutant) bool { return !m.telling })
	}
	binary := buildMutants(t, all)
	all[slices.IndexFunc(all, func(m mutant) bool { return m.token != "" })].spare(t, binary)
	var table sync.Map
	t.Run("all", func(t *testing.T) {
		for i, m := range all {
			t.Run(strings.ReplaceAll(m.what, " ", "-"), func(t *testing.T) {
				if !deep { // hunts use all processors
					t.Parallel()
				}
				row := m.hunt(t, binary, false)
				if deep {
					row = m.hunt(t, binary, true)
				}
				table.Store(i, row)
			})
		}
	})
	var b strings.Builder
	for i := range all {
		if line, ok := table.Load(i); ok {
			fmt.Fprintln(&b, line)
		}
	}
	t.Logf("as in docs/found-by-fault.md:\n%s", b.String())
}

// TestMutantsFit wants each mutant's place to be there, so that none is lost unnoticed.
func TestMutantsFit(t *testing.T) {
	t.Parallel()
	if n := len(mutants()); n < 20 {
		t.Errorf("%d mutants; want at least 20", n)
	}
	if n := len(slices.DeleteFunc(mutants(), func(m mutant) bool { return !m.telling })); n != 5 {
		t.Errorf("%d mutants are played in each run of the tests; want 5", n)
	}
	for _, m := range mutants() {
		if _, err := m.source(); err != nil {
			t.Errorf("%s: %v", m.what, err)
		}
		if !slices.Contains(names(), m.scenario) {
			t.Errorf("%s: there is no scenario %q", m.what, m.scenario)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "found-by-fault.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range wrongRows(mutants(), string(text)) {
		t.Errorf("docs/found-by-fault.md: %s; TRIMTAB_DEEP=1 go test ./test/fault -run TestMutants -v prints the rows", wrong)
	}
}

// wrongRows holds the document's table of mutants against those that there are.
func wrongRows(all []mutant, document string) (wrong []string) {
	_, table, _ := strings.Cut(document, "| The bug |")
	rows := map[string][]string{} // without those of headings
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if what, ok := strings.CutPrefix(cells[0], "| "); ok && len(cells) == 6 {
			if rows[what] != nil {
				wrong = append(wrong, fmt.Sprintf("%q has two rows", what))
			}
			rows[what] = cells[1:]
		}
	}
	for _, m := range all {
		row, ok := rows[m.what]
		delete(rows, m.what)
		switch scenario, by := "`"+m.scenario+"`", m.by(); {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%q has no row", m.what))
		case row[0] != scenario || row[2] != by:
			wrong = append(wrong, fmt.Sprintf("the row of %q says that %s finds it in %s, but the mutant is found by %s in %s", m.what, row[2], row[0], by, scenario))
		}
	}
	for _, what := range slices.Sorted(maps.Keys(rows)) {
		wrong = append(wrong, fmt.Sprintf("%q has a row and is no mutant any more", what))
	}
	return wrong
}

// TestWrongRows proves that a table that is not that of the mutants is noticed.
func TestWrongRows(t *testing.T) {
	t.Parallel()
	all := []mutant{{what: "late", scenario: "life", token: "lag@3"}, {what: "loud", scenario: "rest"}}
	const (
		head = "| Bug |\n|---|\n| other | `a` | I1 | `v1/a/` | 1 | 2 s |\n\n| The bug | Scenario | Breaks | Found by | Schedules | Time |\n|---|---|---|---|---|---|\n"
		late = "| late | `life` | I1 | `v1/life/lag@3` | 12 | 0.5 s |\n"
		loud = "| loud | `rest` | I5 | the undisturbed run |  | 0.1 s |\n"
	)
	tests := map[string]struct {
		why      string
		document string
		want     []string
	}{
		"right":            {"figures are of one day; the table above is another", head + late + loud, nil},
		"no row":           {"a mutant that nobody reads of", head + late, []string{`"loud" has no row`}},
		"no mutant":        {"a row that nothing proves", head + late + loud + strings.Replace(loud, "loud", "mute", 1), []string{`"mute" has a row and is no mutant any more`}},
		"twice":            {"one of them is not looked at", head + late + loud + loud, []string{`"loud" has two rows`}},
		"another token":    {"the schedule would find nothing", head + strings.Replace(late, "@3", "@4", 1) + loud, []string{"the row of \"late\" says that `v1/life/lag@4` finds it in `life`, but the mutant is found by `v1/life/lag@3` in `life`"}},
		"a token no more":  {"the undisturbed run is enough", head + late + strings.Replace(loud, "the undisturbed run", "`v1/rest/lag@1`", 1), []string{"the row of \"loud\" says that `v1/rest/lag@1` finds it in `rest`, but the mutant is found by the undisturbed run in `rest`"}},
		"another scenario": {"the same for what is played", head + late + strings.Replace(loud, "rest", "life", 1), []string{"the row of \"loud\" says that the undisturbed run finds it in `life`, but the mutant is found by the undisturbed run in `rest`"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, wrongRows(all, tt.document)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

// by is what a row says of how the mutant is found.
func (m mutant) by() string {
	if m.token == "" {
		return "the " + undisturbed + " run"
	}
	return "`" + m.schedule() + "`"
}

// source is the mutated file.
func (m mutant) source() (string, error) {
	b, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(b), m.old); n != 1 {
		return "", fmt.Errorf("%s has %d places like this instead of 1; correct the mutant:\n%s", m.file, n, m.old)
	}
	return strings.Replace(string(b), m.old, m.mutated, 1), nil
}

// hunt lets the mutant live its scenario, and returns a line of the table.
func (m mutant) hunt(t *testing.T, binary string, deep bool) string {
	t.Helper()
	arg, start := "-fault.replay="+m.schedule(), time.Now()
	if deep {
		arg = "-fault.replay="
	}
	out, err := m.play(t, binary, m.what, arg)
	f, ok := told(out)
	switch {
	case !ok && !deep && m.token != "":
		t.Fatalf("%s: %s cannot be played: %v\n%s", m.what, m.schedule(), err, out)
	case !ok && brokenUndisturbed(out) != "":
		f = found{Invariants: []string{brokenUndisturbed(out)}, Token: undisturbed}
	case !ok:
		t.Fatalf("%s: %v\n%s", m.what, err, out)
	}
	if f.Took == 0 {
		f.Took = time.Since(start)
	}
	if !slices.ContainsFunc(m.invariants, func(i string) bool { return slices.Contains(f.Invariants, i) }) {
		t.Errorf("%s: %s found %v by %q; want one of %v; TRIMTAB_DEEP=1 looks for another schedule", m.what, m.scenario, f.Invariants, m.schedule(), m.invariants)
	}
	by, schedules := "`"+f.Token+"`", strconv.Itoa(f.Schedules)
	if f.Token == undisturbed || strings.HasSuffix(f.Token, "/") {
		by, schedules = "the "+undisturbed+" run", ""
	}
	return fmt.Sprintf("| %s | `%s` | %s | %s | %s | %.1f s |", m.what, m.scenario, strings.Join(f.Invariants, " "), by, schedules, f.Took.Seconds())
}

// brokenUndisturbed is the invariant that the undisturbed run breaks, by what an exploration says
// that ends with it; empty if it ends for another reason, such as a run that is not the same twice.
func brokenUndisturbed(out []byte) string {
	switch text := string(out); {
	case strings.Contains(text, ": the cluster does not come to rest: "):
		return "I13"
	case strings.Contains(text, ": "+undisturbed+", the cluster came to rest but "):
		return "I1"
	}
	return ""
}

// TestBrokenUndisturbed proves that a mutant counts as found only by what it does, not because the
// scenario cannot be played with it.
func TestBrokenUndisturbed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ why, out, want string }{
		"expectation": {"a story with another end", `scenario "a": step 2, "delete b": undisturbed, the cluster came to rest but b still exists`, "I1"},
		"watched":     {"the same after a restart", `scenario "a": watched for 15 minutes of silence after each step: step 3, "delete b": undisturbed, the cluster came to rest but b still exists`, "I1"},
		"restless":    {"a story without an end", `scenario "a": step 1, "create b": the cluster does not come to rest: controller c reconciles d/b again and again`, "I13"},
		"not twice":   {"a mistake of the mutant, such as a random number", `scenario "a": the undisturbed run is not the same twice: call 7 was "x", then "y"`, ""},
		"masked":      {"the same in an object", `scenario "a": the undisturbed run differs in other fields each time; take random numbers out of the operator`, ""},
		"no effect":   {"the schedule is of another engine", `the schedule of replay token v1/a/lag@3 disturbs nothing any more: the undisturbed run has 7 calls`, ""},
		"goroutines":  {"a leak is I17 where it is looked for", "scenario \"a\": goroutines are left after the operator ended", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := brokenUndisturbed([]byte(tt.out)); got != tt.want {
				t.Errorf("%s: %q breaks %q, want %q", tt.why, tt.out, got, tt.want)
			}
		})
	}
}

// spare wants the schedule that finds the mutant to find nothing in the real engine as it is in that binary. Those of all mutants are
// played in the real engine without the binary, see [harmless].
func (m mutant) spare(t *testing.T, binary string) {
	t.Helper()
	out, err := m.play(t, binary, "", "-fault.replay="+m.schedule())
	if f, ok := told(out); !ok || len(f.Invariants) > 0 {
		t.Errorf("%s finds %v in the real engine: %v\n%s", m.schedule(), f.Invariants, err, out)
	}
}

// harmless are the schedules that find mutants, and must find nothing in the real engine: of those that are played. [suite] plays them.
func harmless() (tokens []string) {
	for _, m := range mutants() {
		if m.token != "" && (m.telling || os.Getenv("TRIMTAB_DEEP") != "") && !slices.Contains(tokens, m.schedule()) {
			tokens = append(tokens, m.schedule())
		}
	}
	return tokens
}

// play runs the binary as a mutant, or as the real engine if what is empty.
func (m mutant) play(t *testing.T, binary, what, arg string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^TestAsMutant$", "-test.v", arg)
	cmd.Env = append(os.Environ(), asMutant+"="+m.scenario, chosen+"="+what)
	return cmd.CombinedOutput()
}

// schedule is the whole token.
func (m mutant) schedule() string { return "v1/" + m.scenario + "/" + m.token }

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
	all := scenarios.NATS() // most mutants are found in these, and to make all others takes a second
	is := func(s fault.Scenario) bool { return s.Name == name }
	if !slices.ContainsFunc(all, is) {
		all = scenarios.All()
	}
	i := slices.IndexFunc(all, is)
	if i < 0 {
		t.Fatalf("there is no scenario %q", name)
	}
	var f found
	start := time.Now()
	kinds := []fault.Kind{fault.Crashes, fault.Faults, fault.Stale, fault.Races, fault.Forgeries, fault.Panics, fault.Hangs, fault.Absences, fault.Replacements, fault.OldCaches}
	kinds = slices.DeleteFunc(kinds, func(k fault.Kind) bool { return !slices.Contains(kindsFor(name), k) }) // they break without a mutant
	if flag.Lookup("fault.replay").Value.String() != "" {
		kinds = kinds[:1] // the schedule is chosen already
	}
	for _, kind := range kinds {
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
				f.Invariants = append(f.Invariants, string(v.Invariant))
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
