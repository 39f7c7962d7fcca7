package plan

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/trimtab-dev/trimtab/trace"
)

// longest is how much of a value is shown.
const longest = 80

// differences returns the fields in which an object differs from what it was. What the API server keeps is left out, and
// so is the status, unless that is what is written.
func differences(t target, before, after map[string]any) []Difference {
	d := &differ{secret: t.group == "" && t.resource == "secrets"}
	a, b := shown(before, t.subresource), shown(after, t.subresource)
	d.compare("", a, b)
	return d.found
}

// shown returns the part of an object that a write of a subresource is about.
func shown(o map[string]any, subresource string) map[string]any {
	if o == nil {
		return map[string]any{}
	}
	if subresource == "status" {
		return map[string]any{"status": o["status"]}
	}
	out := maps.Clone(o)
	delete(out, "status")
	delete(out, "kind")
	delete(out, "apiVersion")
	if m, ok := out["metadata"].(map[string]any); ok {
		m = maps.Clone(m)
		for _, key := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "name", "namespace", "selfLink"} {
			delete(m, key)
		}
		if annotations, ok := m["annotations"].(map[string]any); ok {
			annotations = maps.Clone(annotations)
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration") // a copy of all the rest
			m["annotations"] = annotations
		}
		out["metadata"] = m
	}
	return out
}

// differ collects differences.
type differ struct {
	secret bool
	found  []Difference
}

func (d *differ) compare(path string, before, after any) {
	if reflect.DeepEqual(before, after) {
		return
	}
	a, isMap := orEmpty(before, after)
	b, isMapToo := orEmpty(after, before)
	if isMap && isMapToo {
		for _, key := range keys(a, b) {
			d.compare(join(path, key), a[key], b[key])
		}
		return
	}
	x, isList := before.([]any)
	y, isListToo := after.([]any)
	if isList && isListToo && len(x) == len(y) {
		for i := range x {
			d.compare(path+"["+strconv.Itoa(i)+"]", x[i], y[i])
		}
		return
	}
	d.found = append(d.found, Difference{Path: path, From: d.text(path, before), To: d.text(path, after)})
}

// orEmpty returns v as a map; no value counts as an empty one if the other value is a map.
func orEmpty(v, other any) (map[string]any, bool) {
	if m, ok := v.(map[string]any); ok {
		return m, true
	}
	_, ok := other.(map[string]any)
	return nil, ok && v == nil
}

func keys(a, b map[string]any) []string {
	all := slices.Collect(maps.Keys(a))
	return slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(all, maps.Keys(b)))))
}

func join(path, key string) string {
	if strings.ContainsAny(key, "./") {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// text returns a value as it is shown.
func (d *differ) text(path string, v any) string {
	if v == nil {
		return ""
	}
	if d.secret && (strings.HasPrefix(path, "data") || strings.HasPrefix(path, "stringData")) {
		return trace.Redacted
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	if r := []rune(string(text)); len(r) > longest {
		return string(r[:longest-1]) + "…"
	}
	return string(text)
}
