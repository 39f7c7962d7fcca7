package cel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/health/cel"
)

// Example judges a kind whose status has a phase.
func Example() {
	rule, err := cel.Compiler{}.Compile(health.Expressions{
		Failed:  `status.?phase.orValue("") == "Broken"`,
		Current: `status.phase == "Running" && self.spec.size == status.size`,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, status := range []map[string]any{{"phase": "Broken"}, {"phase": "Running", "size": int64(2)}, {"phase": "Running", "size": int64(3)}} {
		r := rule.Of(map[string]any{"spec": map[string]any{"size": int64(3)}, "status": status})
		fmt.Println(r.Status, r.Why)
	}
	// Output:
	// Failed has failed, because status.?phase.orValue("") == "Broken"
	// InProgress is not ready until status.phase == "Running" && self.spec.size == status.size
	// Current
}

func TestRule(t *testing.T) {
	object := map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"name": "a", "generation": int64(3)},
		"spec": map[string]any{"parts": []any{"a", "b"}}, "status": map[string]any{"phase": "Busy", "ratio": 0.5, "done": true},
	}
	for name, test := range map[string]struct {
		health.Expressions
		want health.Status
		why  string
	}{
		"the first that is true": {health.Expressions{InProgress: `status.phase == "Busy"`, Failed: "true", Current: "true"}, health.InProgress, `is not ready, because status.phase == "Busy"`},
		"the second":             {health.Expressions{InProgress: `status.phase == "Idle"`, Failed: "true", Current: "true"}, health.Failed, "has failed, because true"},
		"the third":              {health.Expressions{InProgress: "false", Failed: "false", Current: "status.done"}, health.Current, ""},
		"none":                   {health.Expressions{Failed: "false", Current: "metadata.generation > 3"}, health.InProgress, "is not ready until metadata.generation > 3"},
		"no rule for Current":    {health.Expressions{Failed: "status.ratio > 0.6"}, health.Current, ""},
		"a field is missing":     {health.Expressions{Current: "status.size == 3"}, health.InProgress, "has no answer to status.size == 3: no such key: size"},
		"no data":                {health.Expressions{Current: "!has(data.x) && kind == 'Widget'"}, health.Current, ""},
		"not a truth value":      {health.Expressions{Current: "status.phase"}, health.InProgress, "has no answer to status.phase: the value is neither true nor false"},
	} {
		t.Run(name, func(t *testing.T) {
			rule, err := cel.Compiler{}.Compile(test.Expressions)
			if err != nil {
				t.Fatal(err)
			}
			want := health.Result{Status: test.want, Why: test.why, Path: "status"}
			if test.want == health.Current {
				want.Path = ""
			}
			if diff := cmp.Diff(want, rule.Of(object)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCost: what takes too long is given up.
func TestCost(t *testing.T) {
	numbers := make([]any, 500)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	rule, err := cel.Compiler{}.Compile(health.Expressions{Current: "spec.n.all(a, spec.n.all(b, spec.n.all(c, a+b+c >= 0)))"})
	if err != nil {
		t.Fatal(err)
	}
	r := rule.Of(map[string]any{"spec": map[string]any{"n": numbers}})
	if r.Status != health.Unknown || !strings.Contains(r.Why, "cost limit") {
		t.Errorf("%+v, want Unknown for its cost", r)
	}
}

func TestCompileErrors(t *testing.T) {
	for name, test := range map[string]struct {
		health.Expressions
		want string
	}{
		"nothing":    {health.Expressions{}, "none of inProgress, failed and current is set"},
		"syntax":     {health.Expressions{Current: "status.phase =="}, "expression current: status.phase ==: line 1, column 16: Syntax error: "},
		"a variable": {health.Expressions{Failed: "state == 1", Current: "true"}, "expression failed: state == 1: line 1, column 1: undeclared reference to 'state'"},
		"a text":     {health.Expressions{Current: "'yes'"}, "expression current: 'yes' is a string; it must be true or false"},
		"too long":   {health.Expressions{InProgress: strings.Repeat(" ", 4096) + "true"}, "expression inProgress: has 4100 bytes; at most 4096 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := (cel.Compiler{}).Compile(test.Expressions); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
