package fingerprint

import (
	"slices"
	"strings"
)

// OfManifest returns the hash of the live values at the fields of a manifest. It stands in for the
// Values half of [Of] where the manager's entry does not say what it wrote: where the object has no
// managedFields, and where the manager updates instead of applying, since an update owns only what it
// changed.
//
// Which lists have keys and which maps are one value is taken from the entries of all managers. Where
// none says it, OfManifest goes by the names that are usual in the API.
func OfManifest(live, manifest map[string]any) Hash {
	w := newWalker(nil)
	// The fields of a key are in the items. Which of them are the key is no more than a guess.
	w.keyless = true
	w.fields(manifestSet(manifest, live), live)
	return w.sumFor(live)
}

// manifestSet returns the set of the fields that applying the manifest would own.
func manifestSet(manifest, live map[string]any) map[string]any {
	_, entries := entries(live, "", "")
	set := mapSet(manifest, live, entries)
	for _, key := range []string{"f:apiVersion", "f:kind", "f:status"} {
		delete(set, key)
	}
	if metadata, ok := set["f:metadata"].(map[string]any); ok {
		for _, name := range serverFields() {
			delete(metadata, prefixField+name)
		}
	}
	return set
}

// serverFields are the fields of metadata that nobody owns.
func serverFields() []string {
	return []string{
		"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
		"deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink",
	}
}

// mapSet returns the set of a map's fields, or one with the map itself if it is empty. Known are the
// sets of the managers at this map.
func mapSet(m, live map[string]any, known []map[string]any) map[string]any {
	set := make(map[string]any, len(m)+1)
	if len(m) == 0 {
		set["."] = map[string]any{}
	}
	for name, v := range m {
		element := prefixField + name
		set[element] = valueSet(name, v, live[name], descend(known, element))
	}
	return set
}

// descend returns the sets at an element of sets.
func descend(known []map[string]any, element string) []map[string]any {
	var below []map[string]any
	for _, set := range known {
		if set, ok := set[element].(map[string]any); ok {
			below = append(below, set)
		}
	}
	return below
}

func valueSet(name string, v, live any, known []map[string]any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		inner, _ := live.(map[string]any)
		if !oneValue(known, len(inner) > 0, wholeMap(name)) {
			return mapSet(v, inner, known)
		}
	case []any:
		inner, _ := live.([]any)
		if !oneValue(known, len(inner) > 0, false) {
			return listSet(name, v, inner, known)
		}
	}
	return map[string]any{}
}

// oneValue reports whether a map or list is owned as a whole. If no manager's set says it, it is
// what is usual.
func oneValue(known []map[string]any, filled, usual bool) bool {
	for _, set := range known {
		for element := range set {
			if element != "." {
				return false
			}
		}
	}
	return usual || filled && len(known) > 0
}

// wholeMap reports whether the API treats maps of this name as one value.
func wholeMap(name string) bool {
	return name == "selector" || name == "matchLabels" || name == "nodeSelector"
}

// listSet returns the set of a list's items, which is empty if they have no key and are no set.
func listSet(name string, items, live []any, known []map[string]any) map[string]any {
	if name == "finalizers" || hasElement(known, prefixValue) {
		set := make(map[string]any, len(items))
		for _, item := range items {
			set[prefixValue+string(marshal(item))] = map[string]any{}
		}
		return set
	}
	names := knownNames(known)
	if len(names) == 0 {
		names = usualNames(items)
	}
	if len(names) == 0 {
		return map[string]any{}
	}
	set := make(map[string]any, len(items))
	for _, item := range items {
		fields, _ := item.(map[string]any)
		inner := counterpart(fields, live, names)
		element := prefixKey + string(marshal(keyOf(inner, names)))
		below := mapSet(fields, inner, descend(known, element))
		set[element] = below
	}
	return set
}

// counterpart returns the live item that has the same key, where a field that the item leaves out
// fits any, since the server may have set its default. Without one it returns the item itself.
func counterpart(item map[string]any, live []any, names []string) map[string]any {
	key := keyOf(item, names)
	want := marshal(key)
	for _, candidate := range live {
		fields, ok := candidate.(map[string]any)
		if !ok {
			continue
		}
		got := keyOf(fields, names)
		for name := range got {
			if _, ok := key[name]; !ok {
				delete(got, name)
			}
		}
		if string(marshal(got)) == string(want) {
			return fields
		}
	}
	return item
}

func hasElement(known []map[string]any, prefix string) bool {
	for _, set := range known {
		for element := range set {
			if strings.HasPrefix(element, prefix) {
				return true
			}
		}
	}
	return false
}

// knownNames returns the names of the key's fields in the sets.
func knownNames(known []map[string]any) []string {
	var names []string
	for _, set := range known {
		for element := range set {
			if strings.HasPrefix(element, prefixKey) {
				names = append(names, keyNames(element)...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// usualNames returns the names of the first of the usual keys that all items have and by which they
// differ, or nil.
func usualNames(items []any) []string {
	for _, names := range [][]string{
		{"name"},
		{"containerPort", "protocol"},
		{"port", "protocol"},
		{"containerPort"},
		{"port"},
		{"mountPath"},
		{"devicePath"},
		{"topologyKey", "whenUnsatisfiable"},
		{"ip"},
		{"uid"},
		{"type"},
	} {
		if len(items) > 0 && differBy(items, names) {
			return names
		}
	}
	return nil
}

func differBy(items []any, names []string) bool {
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		fields, _ := item.(map[string]any)
		key := keyOf(fields, names)
		element := string(marshal(key))
		if len(key) < len(names) || seen[element] {
			return false
		}
		seen[element] = true
	}
	return true
}
