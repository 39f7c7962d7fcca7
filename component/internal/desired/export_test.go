package desired

import "strings"

// OwnedFields are the fields that controllers own, by kind and as the documentation writes them.
func OwnedFields() map[string][]string {
	fields := map[string][]string{}
	for _, f := range ownedFields() {
		for _, kind := range f.kinds {
			fields[kind.Kind] = append(fields[kind.Kind], strings.ReplaceAll(strings.Join(f.path, "."), "."+each, "[]"))
		}
	}
	return fields
}
