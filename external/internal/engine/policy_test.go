package engine

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/loop"
)

func TestAccessGrammar(t *testing.T) {
	tests := map[string]struct {
		value   string
		c, u, d bool
		problem bool
	}{
		"E1-51 empty":              {"", true, true, true, false},
		"E1-52 CUD":                {"CUD", true, true, true, false},
		"E1-52 CD":                 {"CD", true, false, true, false},
		"E1-52 lower case":         {"u", false, true, false, false},
		"E1-52 any order":          {"duc", true, true, true, false},
		"E1-52 commas and blanks":  {"C, U", true, true, false, false},
		"E1-52 none":               {"none", false, false, false, false},
		"blanks alone":             {" ", false, false, false, true},
		"commas alone":             {" , ,", false, false, false, true},
		"E1-52 None":               {"None", false, false, false, false},
		"E1-52 read-only":          {"read-only", false, false, false, false},
		"E1-52 xyz":                {"xyz", false, false, false, true},
		"E1-52 twice":              {"CC", false, false, false, true},
		"E1-52 twice and another":  {"dcd", false, false, false, true},
		"E1-52 B16 disabled":       {"disabled", false, false, false, true},
		"E1-52 B16 no-delete":      {"no-delete", false, false, false, true},
		"E1-52 B16 once":           {"once", false, false, false, true},
		"E1-52 B16 with read":      {"CRUD", false, false, false, true},
		"E1-52 none and a letter":  {"none,C", false, false, false, true},
		"E1-52 other letters of C": {"С", false, false, false, true}, // Cyrillic
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			s := readSettings(map[string]string{api.AnnotationAccess: test.value}, time.Now(), limits{adoption: decide.AdoptAlways, create: true, update: true, remove: true})
			want := decide.Policy{Create: test.c, Update: test.u, Delete: test.d, Adoption: decide.AdoptIfMarked}
			if diff := cmp.Diff(want, s.policy); diff != "" {
				t.Errorf("%q (-want +got):\n%s", test.value, diff)
			}
			if said := len(s.problems) > 0; said != test.problem {
				t.Errorf("%q: problems %v", test.value, s.problems)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	now := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	all := decide.Policy{Create: true, Update: true, Delete: true, Adoption: decide.AdoptIfMarked}
	with := func(f func(*decide.Policy)) decide.Policy { p := all; f(&p); return p }
	tests := map[string]struct {
		why         string
		annotations map[string]string
		pause       decide.Pause
		policy      decide.Policy
		problems    int
	}{
		"nothing":             {"", nil, decide.PauseNone, all, 0},
		"paused":              {"", map[string]string{api.AnnotationPaused: "true"}, decide.PauseChanges, all, 0},
		"not paused":          {"", map[string]string{api.AnnotationPaused: "False"}, decide.PauseNone, all, 0},
		"all":                 {"", map[string]string{api.AnnotationPaused: "all"}, decide.PauseAll, all, 0},
		"until later":         {"", map[string]string{api.AnnotationPaused: "2026-01-05T00:00:01Z"}, decide.PauseChanges, all, 0},
		"until now":           {"over", map[string]string{api.AnnotationPaused: "2026-01-05T00:00:00Z"}, decide.PauseNone, all, 0},
		"until in a zone":     {"", map[string]string{api.AnnotationPaused: "2026-01-05T01:00:01+01:00"}, decide.PauseChanges, all, 0},
		"yes":                 {"fails closed", map[string]string{api.AnnotationPaused: "yes"}, decide.PauseChanges, all, 1},
		"never":               {"", map[string]string{api.AnnotationAdoption: "never"}, decide.PauseNone, with(func(p *decide.Policy) { p.Adoption = decide.AdoptNever }), 0},
		"if-identical":        {"", map[string]string{api.AnnotationAdoption: "if-identical"}, decide.PauseNone, with(func(p *decide.Policy) { p.Adoption = decide.AdoptIfIdentical }), 0},
		"always":              {"", map[string]string{api.AnnotationAdoption: "Always"}, decide.PauseNone, with(func(p *decide.Policy) { p.Adoption = decide.AdoptAlways }), 0},
		"adoption misspelt":   {"fails closed", map[string]string{api.AnnotationAdoption: "allways"}, decide.PauseNone, with(func(p *decide.Policy) { p.Adoption = decide.AdoptNever }), 1},
		"orphan":              {"", map[string]string{api.AnnotationDeletion: "orphan"}, decide.PauseNone, with(func(p *decide.Policy) { p.Orphan = true }), 0},
		"deletion misspelt":   {"neither", map[string]string{api.AnnotationDeletion: "orphna"}, decide.PauseNone, with(func(p *decide.Policy) { p.DeletionUnclear = true }), 1},
		"several at one time": {"all are reported", map[string]string{api.AnnotationDeletion: "x", api.AnnotationAdoption: "y", api.AnnotationAccess: "z"}, decide.PauseNone, decide.Policy{DeletionUnclear: true}, 3},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			s := readSettings(test.annotations, now, limits{adoption: decide.AdoptAlways, create: true, update: true, remove: true})
			if s.pause != test.pause || s.policy != test.policy || len(s.problems) != test.problems {
				t.Errorf("%s: pause %d, policy %+v, problems %v", test.why, s.pause, s.policy, s.problems)
			}
		})
	}
}

// runOf is a run of which only the terms are used.
type runOf struct {
	Run

	terms loop.Terms
}

func (r *runOf) Terms() loop.Terms { return r.terms }

// TestGrant checks who is said to withhold a permission.
func TestGrant(t *testing.T) {
	l := limits{namespace: "shop", create: true, remove: true}
	run := &runOf{terms: loop.Terms{Access: loop.Limit{"shop": "read-only", "": "cud"}}}
	p := &reporter{}
	p.managed = managed{
		e: &Engine{options: Options{Limits: Limits{Access: "CU"}}}, run: run,
		settings: readSettings(map[string]string{api.AnnotationAccess: "dc"}, time.Now(), l),
	}
	want := decide.Grant{Author: "cu", Operator: "", Annotation: "cd", Namespace: "shop"}
	if diff := cmp.Diff(want, p.grant()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p.e.options.Limits.Access, run.terms.Access = "", nil
	if got := p.grant(); got.Author != "cud" || got.Operator != "cud" {
		t.Errorf("%+v, want all letters where there is no limit", got)
	}
}
