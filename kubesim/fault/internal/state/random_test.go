package state_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

func TestShapeOf(t *testing.T) {
	tests := map[string]struct{ why, a, b, want string }{
		"suffix":       {"as Cluster API names MachineSets", "web-x5bq2", "web-k9z4d", "web-*****"},
		"two":          {"as it names Machines", "web-x5bq2-g7h8k", "web-k9z4d-m2n4p", "web-*****-*****"},
		"in between":   {"a word may come after it", "web-x5bq2-tls", "web-k9z4d-tls", "web-*****-tls"},
		"same":         {"nothing is random", "web-x5bq2", "web-x5bq2", ""},
		"all":          {"any name would fit", "x5bq2", "k9z4d", ""},
		"short":        {"a number that differs by chance", "web-1", "web-2", ""},
		"other length": {"these are no random words", "web-small", "web-tiny", ""},
		"other words":  {"the order has changed", "web-x5bq2", "web-k9z4d-m2n4p", ""},
		"capitals":     {"no name has these", "web-X5BQ2", "web-K9Z4D", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, ok := state.ShapeOf("pods", tt.a, tt.b)
			if ok != (tt.want != "") || ok && s.Name != tt.want {
				t.Errorf("got %q, %v, want %q: %s", s.Name, ok, tt.want, tt.why)
			}
			if ok && (!s.Fits(tt.a) || !s.Fits(tt.b) || s.Fits("web-proxy-of-it") || s.Fits("x"+tt.a[1:])) {
				t.Errorf("%q fits what it should not, or not what it was made of", s.Name)
			}
		})
	}
}

// TestRandomNames proves that names which fit a shape are left out, wherever they stand, and that the number of
// objects is not.
func TestRandomNames(t *testing.T) {
	set := func(name, color string) state.Object {
		return state.Object{Group: "demo.dev", Resource: "sets", Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "demo.dev/v1", "kind": "Set", "metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"color": color},
		}}}
	}
	owner := func(current string) state.Object {
		o := set("web", "none")
		o.Object.Object["status"] = map[string]any{"current": current, "all": "sets " + current + " and others"}
		return o
	}
	o := state.Options{Random: []state.Shape{{Kind: "sets.demo.dev", Name: "web-*****"}}}
	a := state.Of([]state.Object{owner("web-x5bq2"), set("web-x5bq2", "red"), set("web-k9z4d", "blue")}, nil, o)
	b := state.Of([]state.Object{owner("web-aaaaa"), set("web-bbbbb", "blue"), set("web-aaaaa", "red")}, nil, o)
	if diff := state.Diff(a, b); diff != "" {
		t.Errorf("equal but for names:\n%s", diff)
	}
	keys := []string{"sets.demo.dev default/web", "sets.demo.dev default/web-*1", "sets.demo.dev default/web-*2"}
	var got []string
	for key := range a.Objects {
		got = append(got, key)
	}
	slices.Sort(got)
	if diff := cmp.Diff(keys, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	c := state.Of([]state.Object{owner("web-x5bq2"), set("web-x5bq2", "red")}, nil, o)
	if state.Equal(a, c) {
		t.Error("an object is missing, and that is not seen")
	}
	if d := state.Of([]state.Object{owner("web-k9z4d"), set("web-x5bq2", "red"), set("web-k9z4d", "blue")}, nil, o); state.Equal(a, d) {
		t.Error("another one is the current one, and that is not seen")
	}
}
