package fingerprint

import (
	"math"
	"slices"
	"strings"
)

// Diff returns the paths at which a live object lacks or differs from what a manifest has, at most
// limit, in the order of the text of their elements; a limit of 0 is none. Missing is how many more
// there are. What the manifest does not name does not count. The path of a list stands for its
// order.
//
// Lists and maps are compared as [OfManifest] does. Zero, false and empty text, lists and maps of text
// are the same as none, because the server drops them in many kinds. Two notations of one quantity
// differ.
func Diff(manifest, live map[string]any, limit int) (paths []Path, missing int) {
	if limit <= 0 {
		limit = math.MaxInt
	}
	d := differ{limit: limit}
	d.fields(nil, manifestSet(manifest, live), manifest, live)
	return d.paths, d.missing
}

type differ struct {
	limit   int
	paths   []Path
	missing int
}

func (d *differ) add(p Path) {
	if len(d.paths) >= d.limit {
		d.missing++
		return
	}
	d.paths = append(d.paths, slices.Clone(p))
}

func (d *differ) fields(p Path, set, manifest, live map[string]any) {
	for _, element := range sortedElements(set, prefixField) {
		name := element[len(prefixField):]
		d.value(p.child(element), set[element], manifest[name], live[name])
	}
}

func (d *differ) value(p Path, set, manifest, live any) {
	children, _ := set.(map[string]any)
	if live == nil && dropped(p[len(p)-1], manifest) {
		return
	}
	switch manifest := manifest.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok && len(children) > 0 {
			d.fields(p, children, manifest, live)
			return
		}
	case []any:
		if live, ok := live.([]any); ok && len(children) > 0 {
			d.items(p, children, manifest, live)
			return
		}
	}
	if !covers(manifest, live) {
		d.add(p)
	}
}

// covers reports whether applying a value as a whole would leave the live one. The items of a list
// may have more fields live than in the manifest: defaults.
func covers(manifest, live any) bool {
	items, ok := manifest.([]any)
	liveItems, isList := live.([]any)
	if !ok || !isList {
		return same(manifest, live)
	}
	return slices.EqualFunc(items, liveItems, coversItem)
}

func coversItem(manifest, live any) bool {
	fields, ok := manifest.(map[string]any)
	liveFields, isMap := live.(map[string]any)
	if !ok || !isMap {
		return covers(manifest, live)
	}
	for name, v := range fields {
		if liveFields[name] == nil && dropped(prefixField+name, v) {
			continue
		}
		if !coversItem(v, liveFields[name]) {
			return false
		}
	}
	return true
}

func (d *differ) items(p Path, set map[string]any, manifest, live []any) {
	if elements := sortedElements(set, prefixValue); len(elements) > 0 {
		for _, element := range elements {
			if !slices.ContainsFunc(live, func(item any) bool {
				return string(marshal(item)) == canonicalJSON(element[len(prefixValue):])
			}) {
				d.add(p.child(element))
			}
		}
		return
	}
	wanted, found := matchItems(set, manifest, live)
	var order, liveOrder []string
	for i, element := range wanted {
		at := slices.Index(found, element)
		switch {
		case element == "":
		case at < 0:
			d.add(p.child(element))
		default:
			order = append(order, element)
			below, _ := set[element].(map[string]any)
			fields, _ := manifest[i].(map[string]any)
			inner, _ := live[at].(map[string]any)
			d.fields(p.child(element), below, fields, inner)
		}
	}
	for _, element := range found {
		if slices.Contains(order, element) {
			liveOrder = append(liveOrder, element)
		}
	}
	if !slices.Equal(order, liveOrder) {
		d.add(p)
	}
}

// matchItems returns the elements of a manifest's items and of the live ones, "" where the set has
// none.
func matchItems(set map[string]any, manifest, live []any) (wanted, found []string) {
	found = matchKeys(set, live)
	names := knownNames([]map[string]any{set})
	wanted = make([]string, len(manifest))
	for i, item := range manifest {
		fields, _ := item.(map[string]any)
		inner := counterpart(fields, live, names)
		wanted[i] = matchKeys(set, []any{inner})[0]
	}
	return wanted, found
}

// same compares two values whole.
func same(a, b any) bool {
	return valueHash(a) == valueHash(b)
}

func valueHash(v any) Hash {
	w := newWalker(nil)
	w.value(v)
	return w.sum()
}

// dropped reports whether the server may leave out the value of a field.
func dropped(element string, v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	case map[string]any:
		return len(v) == 0 && textMap(strings.TrimPrefix(element, prefixField))
	case []any:
		return len(v) == 0
	}
	return false
}

// textMap reports whether maps of this name hold text, or quantities, by key. Of other maps it has a
// meaning that they are there: emptyDir.
func textMap(name string) bool {
	switch name {
	case "labels", "annotations", "data", "binaryData", "stringData", "limits", "requests", "parameters":
		return true
	}
	return wholeMap(name)
}
