package disturb

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// object is one with a few fields.
func object(fields map[string]any) *unstructured.Unstructured {
	all := map[string]any{"metadata": map[string]any{"name": "a", "namespace": "default"}}
	maps.Copy(all, fields)
	return &unstructured.Unstructured{Object: all}
}

// inDeletion is an object that waits for its finalizers.
func inDeletion() *unstructured.Unstructured {
	return object(map[string]any{"metadata": map[string]any{"name": "a", "namespace": "default", "deletionTimestamp": "2000-01-01T00:00:00Z"}})
}

// TestDrifts proves that only what the operator made and keeps is deleted and edited.
func TestDrifts(t *testing.T) {
	const primary, child = "secrets", "deployments"
	made := history.Change{Resource: child, Name: "a", Namespace: "default", By: history.Operator, After: object(nil)}
	mine := history.Change{Resource: primary, Name: "a", Namespace: "default", By: history.User, Call: history.Nobody, After: object(nil)}
	change := func(of history.Change, by string, before, after *unstructured.Unstructured) history.Change {
		of.By, of.Before, of.After = by, before, after
		if by != history.Operator {
			of.Call = history.Nobody
		}
		return of
	}
	status := object(map[string]any{"status": map[string]any{"replicas": int64(1)}})
	edited := object(map[string]any{"spec": map[string]any{"by": "a user"}})
	tests := map[string]struct {
		why     string
		changes []history.Change
		random  bool
		want    int
	}{
		"a child":            {"it is deleted and edited", []history.Change{mine, made}, false, 2},
		"of the start":       {"no object is needed to make it for", []history.Change{made}, false, 2},
		"of others":          {"it is not the operator's to restore", []history.Change{mine, change(made, "foreign", nil, made.After)}, false, 0},
		"gone":               {"it does not exist when the step is over", []history.Change{mine, made, change(made, "user", made.After, nil)}, false, 0},
		"in deletion":        {"it is about to go", []history.Change{mine, made, change(made, "user", made.After, inDeletion())}, false, 0},
		"owner gone":         {"it outlives the object on purpose", []history.Change{mine, made, change(mine, "user", mine.After, nil)}, false, 0},
		"owner in deletion":  {"nobody restores then", []history.Change{mine, made, change(mine, "user", mine.After, inDeletion())}, false, 0},
		"of a played status": {"nobody writes that once more", []history.Change{mine, made, change(made, "user", made.After, status)}, false, 0},
		"a controller's":     {"the cluster writes that once more", []history.Change{mine, made, change(made, "deployments", made.After, status)}, false, 2},
		"edited by a user":   {"a new one would not have that", []history.Change{mine, made, change(made, "user", made.After, edited)}, false, 1},
		"edited and restored": {"a new one is the same", []history.Change{
			made, change(made, "user", made.After, edited), change(made, history.Operator, edited, made.After),
		}, false, 2},
		"with a random name":   {"it is called otherwise in each run", []history.Change{mine, made}, true, 0},
		"housekeeping":         {"an event is not restored", []history.Change{{Resource: "events", Name: "a", By: history.Operator, After: object(nil)}}, false, 0},
		"made after all of it": {"it is of a later step", []history.Change{mine, change(mine, "user", mine.After, mine.After), change(mine, "user", mine.After, mine.After), made}, false, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &history.Run{
				Calls: []history.Call{{
					Verb: "create", Resource: child, Namespace: "default", Name: "a", Sent: map[string]any{"spec": map[string]any{"replicas": int64(1)}},
				}},
				Passes:   []history.Pass{{Object: "default/a"}},
				Steps:    []history.Step{{SettledRev: 3}},
				Changes:  tt.changes,
				IsRandom: func(string, string) bool { return tt.random },
			}
			for i := range r.Changes {
				r.Changes[i].Rev = int64(i + 1)
			}
			if got := Drifts(r, 0); len(got) != tt.want {
				t.Errorf("%s: %d drifts, want %d: %v", tt.why, len(got), tt.want, got)
			}
		})
	}
}

// TestFieldsToDrift proves which values of an object are changed, in which order, and how.
func TestFieldsToDrift(t *testing.T) {
	sent := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a"}, "status": map[string]any{"replicas": 1.0},
		"stringData": map[string]any{"login": "me", "none": ""},
		"spec":       map[string]any{"ports": []any{map[string]any{"port": 80.0, "tls": false}}, "gone": "x", "share": 0.5},
		"immutable":  true,
	}
	live := map[string]any{
		"data":      map[string]any{"login": "bWU="},
		"spec":      map[string]any{"ports": []any{map[string]any{"port": int64(80), "tls": false}}, "share": 0.5},
		"immutable": true,
	}
	type change struct {
		Field string
		Value any
	}
	var got []change
	for _, f := range fieldsOf(sent) {
		value, ok := f.drift(live, true)
		if ok && below(walkTo(live, f), f[len(f)-1]) != value {
			t.Errorf("%s was not changed to %v: %v", f, value, live)
		}
		got = append(got, change{f.String(), value})
	}
	want := []change{
		{"data.login", "ZHJpZnRlZA=="}, {"spec.gone", nil}, {"spec.ports[0].port", int64(81)}, {"spec.ports[0].tls", true}, {"spec.share", 1.5}, {"immutable", false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// walkTo is what holds the value of a field.
func walkTo(content any, f field) any {
	for _, step := range f[:len(f)-1] {
		content = below(content, step)
	}
	return content
}
