package charts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trimtab-dev/trimtab/generator/helm"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

// TestCharts renders each chart with its own values and with sets of others, and, in its long form, with each of its
// switches alone, for an installation and for an upgrade. What Helm refuses must be refused.
func TestCharts(t *testing.T) {
	t.Parallel()
	for title, c := range fromModules() {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			c.compare(t)
		})
	}
	for title, c := range fromRepositories() {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			c.compare(t)
		})
	}
}

// compare compares all renderings of a chart.
func (c chart) compare(t *testing.T) {
	t.Helper()
	folder := c.place(t)
	g, err := helm.NewGenerator(os.DirFS(filepath.Dir(folder)), filepath.Base(folder), helm.Options{})
	if err != nil {
		t.Fatalf("%v\nwhat the chart covers: %s", err, c.why)
	}
	sets := map[string]map[string]any{"": {}}
	for set, text := range c.sets {
		values := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			t.Fatalf("set %q: %v", set, err)
		}
		sets[set] = values
	}
	if os.Getenv("TRIMTAB_DEEP") != "" {
		maps.Copy(sets, switches(t, folder))
	}
	count, refused := 0, 0
	for _, set := range slices.Sorted(maps.Keys(sets)) {
		for _, upgrade := range []bool{false, true} {
			objects, diff, refusal := c.render(t, g, folder, sets[set], upgrade)
			if refusal != nil {
				refused++
			}
			_, named := c.sets[set]
			if expected := slices.Contains(c.refused, set); diff == "" && (named || set == "") && expected != (refusal != nil) {
				diff = fmt.Sprintf("is it refused by both? %v, want %v: %v", refusal != nil, expected, refusal)
			}
			if diff != "" {
				t.Errorf("set %q, upgrade %v: %s\nwhat the chart covers: %s", set, upgrade, diff, c.why)
			}
			count += objects
		}
	}
	t.Logf("%d renderings, %d of them refused by both, %d objects", 2*len(sets), refused, count)
}

// render returns how many objects a rendering has, and how both sides differ; or why both refuse the values.
func (c chart) render(t *testing.T, g *helm.Generator, folder string, values map[string]any, upgrade bool) (int, string, error) {
	t.Helper()
	theirs, refused := helmSide(t.Context(), folder, clone(values), c.apis, upgrade)
	ours, err := ourSide(t.Context(), g, clone(values), c.apis, upgrade)
	switch {
	case refused != nil && err != nil:
		return 0, "", fmt.Errorf("Helm: %w; trimtab: %w", refused, err)
	case refused != nil:
		return 0, fmt.Sprintf("Helm refuses it, and we do not: %v", refused), nil
	case err != nil:
		return 0, fmt.Sprintf("we refuse it, and Helm does not: %v", err), nil
	}
	diff := differ(theirs, theirs, ours)
	if diff == "" {
		return len(theirs), "", nil
	}
	again, refused := helmSide(t.Context(), folder, clone(values), c.apis, upgrade)
	if refused != nil {
		return 0, fmt.Sprintf("Helm renders it once, and refuses it then: %v", refused), nil
	}
	return len(theirs), differ(theirs, again, ours), nil
}

// clone returns a copy: Helm changes the values that it is given.
func clone(values map[string]any) map[string]any {
	text, err := json.Marshal(values)
	out := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic(err) // they come from YAML
	}
	return out
}

// switches returns values that turn each switch of a chart, one in each.
func switches(t *testing.T, folder string) map[string]map[string]any {
	t.Helper()
	c, err := loader.LoadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	var walk func(values map[string]any, at []string)
	walk = func(values map[string]any, at []string) {
		for key, value := range values {
			here := append(slices.Clone(at), key)
			switch value := value.(type) {
			case map[string]any:
				walk(value, here)
			case bool:
				var set any = !value
				for _, part := range slices.Backward(here) {
					set = map[string]any{part: set}
				}
				out["switch "+strings.Join(here, ".")], _ = set.(map[string]any)
			}
		}
	}
	walk(c.Values, nil)
	return out
}

// differ says how ours differs from Helm's rendering. What differs between two renderings of Helm itself is not
// compared, but where it has one value in several places, ours must have one there, too.
func differ(theirs, again, ours []object) string {
	if diff := cmp.Diff(sequence(theirs), sequence(ours)); diff != "" {
		return "the objects and their order (-Helm +trimtab):\n" + diff
	}
	a, b, c := flat(theirs), flat(again), flat(ours)
	random := map[string]bool{}
	for _, place := range slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b))) {
		if x, y := a[place], b[place]; !cmp.Equal(x, y) {
			random[place] = true
		}
	}
	same := groups(a, random)
	if diff := cmp.Diff(same, groups(c, random)); diff != "" {
		return "which places have the same random value (-Helm +trimtab):\n" + diff
	}
	isRandom := func(place string, _ any) bool { return random[place] }
	maps.DeleteFunc(a, isRandom)
	maps.DeleteFunc(c, isRandom)
	if diff := cmp.Diff(a, c); diff != "" {
		return "the objects (-Helm +trimtab):\n" + diff
	}
	return ""
}

func sequence(objects []object) []string {
	out := make([]string, len(objects))
	for i, o := range objects {
		out[i] = fmt.Sprintf("%s %d %s, deleted %s", o.phase, o.turn, o.key(), o.purged)
	}
	return out
}

// flat returns what is in objects by its place.
func flat(objects []object) map[string]any {
	out := map[string]any{}
	var walk func(place string, v any)
	walk = func(place string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if len(v) == 0 {
				out[place] = "{}"
			}
			for key, value := range v {
				walk(place+"."+key, value)
			}
		case []any:
			if len(v) == 0 {
				out[place] = "[]"
			}
			for i, value := range v {
				walk(fmt.Sprintf("%s[%d]", place, i), value)
			}
		default:
			out[place] = v
		}
	}
	for i, o := range objects {
		o.content = withoutNulls(o.content)
		walk(fmt.Sprintf("%d %s", i, o.key()), o.content)
	}
	return out
}

// groups returns the random places that have the same value, for each value.
func groups(values map[string]any, random map[string]bool) []string {
	by := map[string][]string{}
	for place := range random {
		value, ok := values[place]
		key := fmt.Sprint(value)
		if !ok {
			continue
		}
		by[key] = append(by[key], place)
	}
	out := make([]string, 0, len(by))
	for _, places := range by {
		out = append(out, strings.Join(slices.Sorted(slices.Values(places)), ", "))
	}
	slices.Sort(out)
	return out
}

// withoutNulls returns an object without labels and annotations that are null, which count as absent.
func withoutNulls(content map[string]any) map[string]any {
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, field := range []string{"annotations", "labels"} {
		values, _ := metadata[field].(map[string]any)
		values = maps.Clone(values)
		maps.DeleteFunc(values, func(_ string, v any) bool { return v == nil })
		if metadata[field] = any(values); len(values) == 0 {
			delete(metadata, field)
		}
	}
	content = maps.Clone(content)
	content["metadata"] = metadata
	return content
}
