package fingerprint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Remove removes the value at a path from an object. An element that selects an item by a part of its key
// selects all items that have it.
func Remove(object map[string]any, p Path) {
	edit(object, p, func(fields map[string]any, name string) { delete(fields, name) })
}

// Carry copies the value at a path from one object to another where there is none. Items of lists must
// be in both.
func Carry(from, to map[string]any, p Path) {
	var value any
	found := false
	edit(from, p, func(fields map[string]any, name string) {
		if v, ok := fields[name]; ok && !found {
			value, found = v, true
		}
	})
	if found {
		edit(to, p, func(fields map[string]any, name string) {
			if _, given := fields[name]; !given {
				fields[name] = value
			}
		})
	}
}

// edit calls do for the fields at a path, with the map that has them.
func edit(value any, p Path, do func(fields map[string]any, name string)) {
	if len(p) == 0 {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		name, ok := strings.CutPrefix(p[0], prefixField)
		if !ok {
			return
		}
		if len(p) == 1 {
			do(value, name)
			return
		}
		edit(value[name], p[1:], do)
	case []any:
		for _, item := range value {
			if fields, ok := item.(map[string]any); ok && Selects(p[0], fields) {
				edit(item, p[1:], do)
			}
		}
	}
}

// Selects reports whether an element of a path names an item, at least by a part of its key.
func Selects(element string, item map[string]any) bool {
	text, ok := strings.CutPrefix(element, prefixKey)
	var key map[string]any
	if !ok || json.Unmarshal([]byte(text), &key) != nil {
		return false
	}
	for name, v := range key {
		if got, ok := item[name]; !ok || fmt.Sprint(got) != fmt.Sprint(v) {
			return false
		}
	}
	return true
}

// Match returns the elements of a set that an element of a path names, at least by a part of their key.
func Match(set map[string]any, element string) []string {
	if _, ok := set[element]; ok || !strings.HasPrefix(element, prefixKey) {
		return []string{element}
	}
	var found []string
	for candidate := range set {
		var key map[string]any
		if text, ok := strings.CutPrefix(candidate, prefixKey); ok && json.Unmarshal([]byte(text), &key) == nil && Selects(element, key) {
			found = append(found, candidate)
		}
	}
	slices.Sort(found)
	return found
}
