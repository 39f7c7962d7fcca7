package fingerprint

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// items writes the items of a list at the elements of a set. Items that are found by key count in
// their order, since the order of containers and variables has a meaning; those of a set of values
// do not. Items that the set does not name are not written.
func (w *walker) items(set map[string]any, live []any) {
	keyed := 0
	sample := ""
	for key := range set {
		if strings.HasPrefix(key, "k:") {
			keyed++
			sample = key
		}
	}
	w.kind(kindList)
	switch {
	case keyed > 0:
		w.keyedItems(set, live, keyed, sample)
	default:
		w.plainItems(set, live)
	}
	w.kind(kindEnd)
}

// keyedItems writes items in their order, each after its element.
func (w *walker) keyedItems(set map[string]any, live []any, keyed int, sample string) {
	names := keyNames(sample)
	found := make([]string, len(live))
	distinct := 0
	for i, item := range live {
		if fields, ok := item.(map[string]any); ok && w.keyText(fields, names) {
			if _, ok := set[string(w.text)]; ok {
				found[i] = string(w.text)
				if !slices.Contains(found[:i], found[i]) {
					distinct++
				}
			}
		}
	}
	if distinct < keyed {
		// An element is missing, or its text is not the one that keyText builds.
		found = matchKeys(set, live)
	}
	for i, key := range found {
		if key != "" {
			w.string(key)
			w.element(key, set[key], live[i])
		}
	}
}

// keyText builds the element of an item in w.text. It reports false if a field of the key is missing
// or needs an escape in JSON.
func (w *walker) keyText(item map[string]any, names []string) bool {
	if len(names) == 0 {
		return false
	}
	w.text = append(w.text[:0], "k:"...)
	sep := byte('{')
	for _, name := range names {
		w.text = append(w.text, sep, '"')
		w.text = append(w.text, name...)
		w.text = append(w.text, '"', ':')
		if !w.scalarText(item[name]) {
			return false
		}
		sep = ','
	}
	w.text = append(w.text, '}')
	return true
}

// scalarText appends a scalar as JSON to w.text, unless it needs an escape.
func (w *walker) scalarText(v any) bool {
	switch v := v.(type) {
	case string:
		for i := range len(v) {
			if c := v[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
				return false
			}
		}
		w.text = append(w.text, '"')
		w.text = append(w.text, v...)
		w.text = append(w.text, '"')
	case int64:
		w.text = strconv.AppendInt(w.text, v, 10)
	case bool:
		w.text = strconv.AppendBool(w.text, v)
	default:
		return false
	}
	return true
}

// keyNames returns the names of the fields in a key, in their order. It is empty if they need an
// escape in JSON.
func keyNames(element string) []string {
	var key map[string]any
	if json.Unmarshal([]byte(element[2:]), &key) != nil {
		return nil
	}
	names := make([]string, 0, len(key))
	for name := range key {
		if strings.ContainsAny(name, `"\<>&`) {
			return nil
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// matchKeys returns for each item the element of the set that names it, or "".
func matchKeys(set map[string]any, live []any) []string {
	found := make([]string, len(live))
	for _, element := range sortedElements(set, "k:") {
		var key map[string]any
		if json.Unmarshal([]byte(element[2:]), &key) != nil {
			continue
		}
		for i, item := range live {
			fields, ok := item.(map[string]any)
			if ok && found[i] == "" && hasKey(fields, key) {
				found[i] = element
			}
		}
	}
	return found
}

func hasKey(item, key map[string]any) bool {
	for name, want := range key {
		if !sameScalar(item[name], want) {
			return false
		}
	}
	return true
}

// sameScalar compares a live value with one that encoding/json decoded.
func sameScalar(live, want any) bool {
	if n, ok := live.(int64); ok {
		live = float64(n)
	}
	switch live.(type) {
	case nil, string, bool, float64:
		return live == want
	}
	return false
}

// plainItems writes which values of the set are in the list, and the items that the set names by
// index.
func (w *walker) plainItems(set map[string]any, live []any) {
	elements := sortedElements(set, "v:")
	if len(elements) > 0 {
		present := presentValues(live)
		for _, element := range elements {
			if present[canonicalJSON(element[2:])] {
				w.string(element)
			}
		}
	}
	for _, element := range sortedElements(set, "i:") {
		w.string(element)
		i, err := strconv.Atoi(element[2:])
		if err != nil || i < 0 || i >= len(live) {
			w.kind(kindAbsent)
			continue
		}
		w.element(element, set[element], live[i])
	}
}

func presentValues(live []any) map[string]bool {
	present := make(map[string]bool, len(live))
	for _, item := range live {
		if data, err := json.Marshal(item); err == nil {
			present[canonicalJSON(string(data))] = true
		}
	}
	return present
}

// canonicalJSON writes a scalar as encoding/json does.
func canonicalJSON(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	data, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return string(data)
}

func sortedElements(set map[string]any, prefix string) []string {
	var elements []string
	for key := range set {
		if strings.HasPrefix(key, prefix) {
			elements = append(elements, key)
		}
	}
	slices.Sort(elements)
	return elements
}
