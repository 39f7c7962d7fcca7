package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// parse returns the object that a manifest describes.
func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestHints goes through all combinations of what a status and the hints can say of an object of
// generation 3. Zero means that a generation is not set, and an empty status that there is no condition.
func TestHints(t *testing.T) {
	rows := 0
	for _, observed := range []int64{0, 1, 3} {
		for _, ready := range []string{"", "Unknown", "False", "True"} {
			for _, about := range []int64{0, 1, 3} {
				if ready == "" && about != 0 {
					continue
				}
				for _, hints := range []Hints{{}, {ObservedGeneration: true}, {ReadyCondition: true}, {ObservedGeneration: true, ReadyCondition: true}} {
					rows++
					var status strings.Builder
					if observed != 0 {
						fmt.Fprintf(&status, "observedGeneration: %d, ", observed)
					}
					if ready != "" {
						fmt.Fprintf(&status, "conditions: [{type: Ready, status: %q, observedGeneration: %d}]", ready, about)
					}
					u := parse(t, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a, generation: 3}, status: {"+status.String()+"}}")
					seen := observed == 3 || observed == 0 && !hints.ObservedGeneration
					fine := ready == "True" && about != 1 || ready == "" && !hints.ReadyCondition
					want := InProgress
					if seen && fine {
						want = Current
					}
					got := Of(u, hints, nil)
					if got.Status != want {
						t.Errorf("status {%s} with hints %+v is %s, want %s", status.String(), hints, got.Status, want)
					}
					if (got.Status == Current) != (got.Why == "") || (got.Status == Current) != (got.Path == "") {
						t.Errorf("status {%s} with hints %+v: %+v", status.String(), hints, got)
					}
				}
			}
		}
	}
	if rows < 110 {
		t.Errorf("%d combinations, want at least 110", rows)
	}
}

func TestConditionsHint(t *testing.T) {
	const widget = "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a, generation: 3}, status: {conditions: [%s]}}"
	for name, test := range map[string]struct{ conditions, want string }{
		"both":          {"{type: A, status: 'True'}, {type: B, status: 'True', observedGeneration: 3}", ""},
		"one is absent": {"{type: A, status: 'True'}", "has condition B Unknown"},
		"one is false":  {"{type: A, status: 'True'}, {type: B, status: 'False', message: no disk}", "has condition B False: no disk"},
		"one is old":    {"{type: A, status: 'True'}, {type: B, status: 'True', observedGeneration: 2}", "has condition B of an earlier generation"},
		"none":          {"", "has condition A Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Of(parse(t, fmt.Sprintf(widget, test.conditions)), Hints{Conditions: []string{"A", "B"}}, nil); got.Why != test.want {
				t.Errorf("it %s; want %q", got.Why, test.want)
			}
		})
	}
}

func TestParseHints(t *testing.T) {
	for list, want := range map[string]struct {
		Hints
		unknown []string
	}{
		"":                        {},
		"has-observed-generation": {Hints: Hints{ObservedGeneration: true}},
		" has-ready-condition, has-observed-generation": {Hints: Hints{ObservedGeneration: true, ReadyCondition: true}},
		"conditions=B; A;B,has-ready-condition":         {Hints: Hints{ReadyCondition: true, Conditions: []string{"A", "B"}}},
		"conditions=A,conditions=B":                     {Hints: Hints{Conditions: []string{"A", "B"}}},
		"conditions=,has-ready-condition=true,ready":    {unknown: []string{"conditions=", "has-ready-condition=true", "ready"}},
	} {
		got, unknown := ParseHints(list)
		if diff := cmp.Diff(want.Hints, got); diff != "" || !slices.Equal(unknown, want.unknown) {
			t.Errorf("%q: unknown %q, want %q; hints (-want +got):\n%s", list, unknown, want.unknown, diff)
		}
	}
}

// TestRule: a rule replaces what is known of a kind, but judges no status of an older spec.
func TestRule(t *testing.T) {
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: a, generation: 3%s}, status: {phase: Running, observedGeneration: %d}}"
	fine := always{Status: Current}
	for name, test := range map[string]struct {
		more     string
		observed int
		rule     Rule
		want     Result
	}{
		"asked": {"", 3, fine, Result{Status: Current}},
		"older": {"", 2, fine, Result{InProgress, "has a status of generation 2, and is at generation 3", "status.observedGeneration"}},
		"being deleted": {
			", deletionTimestamp: '2026-01-02T03:04:05Z'", 3, fine,
			Result{Terminating, "is being deleted", "metadata.deletionTimestamp"},
		},
		"refused": {"", 3, always{Failed, "has no\nsense", "spec"}, Result{Failed, "has no sense", "spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Of(parse(t, fmt.Sprintf(pod, test.more, test.observed)), Hints{}, test.rule)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// always is a rule with one answer.
type always Result

func (a always) Of(map[string]any) Result { return Result(a) }
