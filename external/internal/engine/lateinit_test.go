package engine

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdded(t *testing.T) {
	tests := map[string]struct{ why, before, after, done, want, paths, set string }{
		"nothing":        {"", `{"a":1}`, `{"a":1}`, "", `null`, "", ""},
		"null":           {"null is unset", `{"a":null}`, `{"a":1}`, "", `{"a":1}`, "spec.a", ""},
		"part is done":   {"whoever removed all of it meant it", `{}`, `{"a":{"b":1,"c":2}}`, "spec.a.b", `{"a":{"c":2}}`, "spec.a.c", ""},
		"done with more": {"a blank is no part of a path", `{}`, `{"a":1,"b":2}`, "spec.b, spec.a", `null`, "", ""},
		"unset":          {"", `{"a":1}`, `{"a":1,"b":9007199254740993}`, "", `{"b":9007199254740993}`, "spec.b", ""},
		"no spec":        {"", `null`, `{"b":{"c":"x"}}`, "", `{"b":{"c":"x"}}`, "spec.b.c", ""},
		"nested":         {"only what is new is written", `{"a":{"b":1}}`, `{"a":{"b":1,"c":2}}`, "", `{"a":{"c":2}}`, "spec.a.c", ""},
		"done":           {"whoever removed it meant it", `{"a":{"b":1}}`, `{"a":{"b":1,"c":2},"d":3}`, "spec.a.c", `{"d":3}`, "spec.d", ""},
		"set":            {"", `{"a":1}`, `{"a":2,"b":3}`, "", `null`, "", "spec.a"},
		"set and nested": {"", `{"a":{"b":1}}`, `{"a":{"b":2}}`, "", `null`, "", "spec.a.b"},
		"removed":        {"", `{"a":1,"b":2}`, `{"b":2}`, "", `null`, "", "spec.a"},
		"list":           {"a list that is set is one value", `{"a":[1]}`, `{"a":[1,2]}`, "", `null`, "", "spec.a"},
		"other type":     {"", `{"a":{"b":1}}`, `{"a":"x"}`, "", `null`, "", "spec.a"},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			fields, set := added("spec", parseFields(t, test.before), parseFields(t, test.after), strings.FieldsFunc(test.done, isSeparator))
			got, err := json.Marshal(fields)
			if diff := cmp.Diff([]string{test.want, test.paths, test.set}, []string{string(got), strings.Join(pathsOf("spec", fields), ","), set}); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", test.why, err, diff)
			}
		})
	}
}

func parseFields(t *testing.T, text string) (fields map[string]any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		t.Fatal(err)
	}
	return fields
}
