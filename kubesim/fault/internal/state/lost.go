package state

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// WithoutLost returns the state that was wanted, and the objects with these keys as they are in the one that was reached
// if all that they lack there is conditions that are False.
func WithoutLost(want, got history.State, keys []string) history.State {
	x, y := sheets(want, got), sheets(got, want)
	want.Objects = maps.Clone(want.Objects)
	for _, key := range keys {
		before, after := x[key], y[key]
		if before != "" && after != "" && before != after && lacksFalseOnly(before, after) {
			want.Objects[key] = after
		}
	}
	return want
}

// lacksFalseOnly reports whether one sheet becomes the other if conditions that are False are left out.
func lacksFalseOnly(before, after string) bool {
	var want, got map[string]any
	if yaml.Unmarshal([]byte(before), &want) != nil || yaml.Unmarshal([]byte(after), &got) != nil {
		return false
	}
	status, _ := want["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	now, _ := got["status"].(map[string]any)
	kept, _ := now["conditions"].([]any)
	if status == nil || now == nil {
		return false
	}
	isKept := func(kind any) bool {
		return slices.ContainsFunc(kept, func(c any) bool { return fieldOf(c, "type") == kind })
	}
	list = slices.DeleteFunc(list, func(c any) bool {
		return fieldOf(c, "status") == "False" && !isKept(fieldOf(c, "type"))
	})
	if status["conditions"] = list; len(list) == 0 {
		delete(status, "conditions")
	}
	return reflect.DeepEqual(want, got)
}

// fieldOf returns a field of a condition, nil if there is none.
func fieldOf(condition any, field string) any {
	m, _ := condition.(map[string]any)
	return m[field]
}

// InDeletion lists the objects in a state that are being deleted, by key.
func InDeletion(s history.State) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(s.Objects)) {
		var object struct {
			Metadata struct{ DeletionTimestamp string }
		}
		if sheet := s.Objects[key]; strings.Contains(sheet, "deletionTimestamp: ") && yaml.Unmarshal([]byte(sheet), &object) == nil && object.Metadata.DeletionTimestamp != "" {
			keys = append(keys, key)
		}
	}
	return keys
}
