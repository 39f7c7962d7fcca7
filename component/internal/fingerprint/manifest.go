package fingerprint

import (
	"encoding/json"
	"slices"
)

// OfManifest returns the hash of the live values at the fields of a manifest. It stands in for the
// Values half of [Of] where an object has no managedFields. Without them it has to guess which
// lists have keys, and it does not see keys that are added to maps which the API treats as one
// value, other than selectors.
func OfManifest(live, manifest map[string]any) Hash {
	w := newWalker(nil)
	w.fields(manifestSet(manifest), live)
	return w.sum()
}

// manifestSet returns the set of the fields that applying the manifest would own.
func manifestSet(manifest map[string]any) map[string]any {
	set := mapSet(manifest)
	for _, key := range []string{"f:apiVersion", "f:kind", "f:status"} {
		delete(set, key)
	}
	if metadata, ok := set["f:metadata"].(map[string]any); ok {
		for _, name := range serverFields() {
			delete(metadata, "f:"+name)
		}
	}
	return set
}

// serverFields are the fields of metadata that nobody owns.
func serverFields() []string {
	return []string{
		"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
		"deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink", "clusterName",
	}
}

func mapSet(m map[string]any) map[string]any {
	set := make(map[string]any, len(m))
	for name, v := range m {
		set["f:"+name] = valueSet(name, v)
	}
	return set
}

func valueSet(name string, v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		if !atomicMap(name) {
			return mapSet(v)
		}
	case []any:
		names := listKey(v)
		if len(names) == 0 {
			break
		}
		set := make(map[string]any, len(v))
		for _, item := range v {
			fields, _ := item.(map[string]any)
			below := mapSet(fields)
			below["."] = map[string]any{}
			set[keyElement(fields, names)] = below
		}
		return set
	}
	return map[string]any{}
}

// atomicMap reports whether the API treats maps of this name as one value.
func atomicMap(name string) bool {
	return name == "selector" || name == "matchLabels" || name == "nodeSelector"
}

// listKey guesses which fields are the key of a list's items: the first of those that are usual in
// the API by which all items are there and differ. It returns nil if there is none.
func listKey(items []any) []string {
	candidates := [][]string{
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
		{"key"},
	}
	for _, names := range candidates {
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
		for _, name := range names {
			switch fields[name].(type) {
			case string, int64, bool:
			default:
				return false
			}
		}
		element := keyElement(fields, names)
		if seen[element] {
			return false
		}
		seen[element] = true
	}
	return true
}

// keyElement returns the element that names an item by its key.
func keyElement(item map[string]any, names []string) string {
	key := make(map[string]any, len(names))
	for _, name := range names {
		key[name] = item[name]
	}
	return "k:" + string(marshal(key))
}

// marshal writes a value that was decoded from JSON.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return slices.Clip(data)
}
