package fingerprint

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Prefixes of the elements of a set.
const (
	prefixField = "f:"
	prefixKey   = "k:"
	prefixValue = "v:"
	prefixIndex = "i:"
)

// items writes the items of a list at the elements of a set. Items that are found by key count in
// their order, since the order of containers and variables has a meaning; those of a set of values
// do not. Items that the set does not name are not written.
func (w *walker) items(set map[string]any, live []any) {
	w.kind(kindList)
	keyed, sample := 0, ""
	for key := range set {
		if strings.HasPrefix(key, prefixKey) {
			keyed, sample = keyed+1, key
		}
	}
	if keyed > 0 {
		w.keyedItems(set, live, keyed, sample)
	} else {
		w.plainItems(set, live)
	}
	w.kind(kindEnd)
}

// keyedItems writes items in their order, each after its element.
func (w *walker) keyedItems(set map[string]any, live []any, keyed int, sample string) {
	from := len(w.keys)
	if !w.findByText(set, live, keyed, sample) {
		w.keys = append(w.keys[:from], matchKeys(set, live)...)
	}
	for i, item := range live {
		if key := w.keys[from+i]; key != "" {
			if !w.keyless {
				w.string(key)
			}
			w.element(key, set[key], item)
		}
	}
	w.keys = w.keys[:from]
}

// findByText pushes the element of each item, or "", to w.keys. It builds the elements of the items
// and reports false if it did not find each element of the set exactly once: then an item is missing
// or there twice, or its element needs an escape.
func (w *walker) findByText(set map[string]any, live []any, keyed int, sample string) bool {
	names := keyNames(sample)
	from := len(w.keys)
	matches := 0
	for _, item := range live {
		element := ""
		if fields, ok := item.(map[string]any); ok && w.keyText(fields, names) {
			if _, ok := set[string(w.text)]; ok {
				element = string(w.text)
				matches++
			}
		}
		w.keys = append(w.keys, element)
	}
	if matches != keyed {
		return false
	}
	to := len(w.keys)
	w.keys = append(w.keys, w.keys[from:]...)
	slices.Sort(w.keys[to:])
	for i := to + 1; i < len(w.keys); i++ {
		if w.keys[i] != "" && w.keys[i] == w.keys[i-1] {
			return false
		}
	}
	w.keys = w.keys[:to]
	return true
}

// keyText builds the element of an item in w.text. It reports false if a field of the key is missing
// or needs an escape in JSON.
func (w *walker) keyText(item map[string]any, names []string) bool {
	if len(names) == 0 {
		return false
	}
	w.text = append(w.text[:0], prefixKey...)
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
			if c := v[i]; c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
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
	if json.Unmarshal([]byte(element[len(prefixKey):]), &key) != nil {
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

// matchKeys returns for each item the element of the set that names it, or "". A field that is left
// out of a key is another key than any value of it.
func matchKeys(set map[string]any, live []any) []string {
	elements := map[string]string{}
	var names []string
	for element := range set {
		var key map[string]any
		if !strings.HasPrefix(element, prefixKey) || json.Unmarshal([]byte(element[len(prefixKey):]), &key) != nil {
			continue
		}
		elements[string(marshal(key))] = element
		for name := range key {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	found := make([]string, len(live))
	for i, item := range live {
		fields, _ := item.(map[string]any)
		found[i] = elements[string(marshal(keyOf(fields, names)))]
	}
	return found
}

// keyOf returns the fields of an item that have one of the names.
func keyOf(item map[string]any, names []string) map[string]any {
	key := make(map[string]any, len(names))
	for _, name := range names {
		if v, ok := item[name]; ok {
			key[name] = v
		}
	}
	return key
}

// plainItems writes which values of the set are in the list, and the items that the set names by
// index.
func (w *walker) plainItems(set map[string]any, live []any) {
	elements := sortedElements(set, prefixValue)
	if len(elements) > 0 {
		present := make(map[string]bool, len(live))
		for _, item := range live {
			present[string(marshal(item))] = true
		}
		for _, element := range elements {
			if present[canonicalJSON(element[len(prefixValue):])] {
				w.string(element)
			}
		}
	}
	for _, element := range sortedElements(set, prefixIndex) {
		w.string(element)
		item, ok := byIndex(live, element)
		if !ok {
			w.kind(kindAbsent)
			continue
		}
		w.element(element, set[element], item)
	}
}

func byIndex(items []any, element string) (any, bool) {
	i, err := strconv.Atoi(element[len(prefixIndex):])
	if err != nil || i < 0 || i >= len(items) {
		return nil, false
	}
	return items[i], true
}

// canonicalJSON writes a JSON value as marshal does.
func canonicalJSON(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	return string(marshal(v))
}

// marshal writes a value that was decoded from JSON. Other values give nil.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return data
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
