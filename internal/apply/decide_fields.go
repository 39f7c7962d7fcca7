package apply

import (
	"maps"
	"slices"

	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// fields is a set of fields as managedFields has it: elements such as "f:spec" with what is owned below
// them. An element without any is owned as a whole; "." is the element itself.
type fields = map[string]any

func below(set fields, element string) (fields, bool) {
	inner, ok := set[element].(map[string]any)
	return inner, ok
}

// union returns the fields of both sets.
func union(a, b fields) fields {
	out := maps.Clone(a)
	if out == nil {
		out = fields{}
	}
	for element := range b {
		x, found := below(out, element)
		y, _ := below(b, element)
		if !found || len(x) > 0 && len(y) > 0 {
			out[element] = union(x, y)
		}
	}
	return out
}

// exceeds reports whether a has a value that is not in b. Maps and lists that both have in part are not
// values.
func exceeds(a, b fields) bool {
	for element := range a {
		if element == "." {
			continue
		}
		x, _ := below(a, element)
		y, found := below(b, element)
		if !found || len(x) > 0 && len(y) > 0 && exceeds(x, y) {
			return true
		}
	}
	return false
}

// minus returns a without what is in b. Maps and lists of which nothing is left go as well.
func minus(a, b fields) fields {
	out := fields{}
	for element := range a {
		x, _ := below(a, element)
		y, found := below(b, element)
		if !found {
			out[element] = x
			continue
		}
		if len(x) == 0 || len(y) == 0 {
			continue
		}
		if rest := minus(x, y); len(rest) > 1 || len(rest) == 1 && rest["."] == nil {
			out[element] = rest
		}
	}
	return out
}

// meets reports whether two sets have a value in common.
func meets(a, b fields) bool {
	for element := range a {
		x, _ := below(a, element)
		y, found := below(b, element)
		if found && element != "." && (len(x) == 0 || len(y) == 0 || meets(x, y)) {
			return true
		}
	}
	return false
}

// within returns the part of a set that is at the paths or below them.
func within(set fields, paths []fingerprint.Path) fields {
	out := fields{}
	for _, p := range paths {
		if part, ok := at(set, p); ok {
			out = union(out, part)
		}
	}
	return out
}

// at returns the part of a set at a path or below it.
func at(set fields, p fingerprint.Path) (fields, bool) {
	if len(p) == 0 {
		return set, true
	}
	out := fields{}
	for _, element := range fingerprint.Match(set, p[0]) {
		if inner, found := below(set, element); found {
			if part, ok := at(inner, p[1:]); ok {
				out[element] = part
			}
		}
	}
	return out, len(out) > 0
}

// entry is one of an object's managedFields.
type entry map[string]any

func (e entry) is(manager, operation string) bool {
	return e["manager"] == manager && e["operation"] == operation && e.whole()
}

// whole reports whether an entry is about the object and not one of its subresources.
func (e entry) whole() bool { return e["subresource"] == nil || e["subresource"] == "" }

func (e entry) fields() fields {
	set, _ := e["fieldsV1"].(map[string]any)
	return set
}

// with returns the entry with other fields.
func (e entry) with(set fields) entry {
	e = maps.Clone(e)
	e["fieldsV1"] = set
	return e
}

// owners are the managedFields of an object, as seen by one manager.
type owners struct {
	manager string
	entries []entry
}

func ownersOf(object map[string]any, manager string) *owners {
	metadata, _ := object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	o := &owners{manager: manager}
	for _, item := range list {
		if e, ok := item.(map[string]any); ok {
			o.entries = append(o.entries, e)
		}
	}
	return o
}

// ours is what the manager applied.
func (o *owners) ours() fields {
	for _, e := range o.entries {
		if e.is(o.manager, opApply) {
			return e.fields()
		}
	}
	return nil
}

// take moves fields from the entries that match to what the manager applied: all of them, or those
// at some paths. It returns what it moved.
func (o *owners) take(match func(entry) bool, part func(fields) fields) fields {
	moved := fields{}
	version := any(nil)
	kept := make([]entry, 0, len(o.entries))
	for _, e := range o.entries {
		if !match(e) {
			kept = append(kept, e)
			continue
		}
		claim := part(e.fields())
		if len(claim) > 0 {
			moved, version = union(moved, claim), e["apiVersion"]
		}
		if rest := minus(e.fields(), claim); len(rest) > 0 {
			kept = append(kept, e.with(rest))
		}
	}
	o.entries = kept
	if len(moved) > 0 {
		o.give(moved, version)
	}
	return moved
}

// give adds fields to what the manager applied.
func (o *owners) give(set fields, version any) {
	for i, e := range o.entries {
		if e.is(o.manager, opApply) {
			o.entries[i] = e.with(union(e.fields(), set))
			return
		}
	}
	o.entries = append(o.entries, entry{
		"manager": o.manager, "operation": opApply, "apiVersion": version, "fieldsType": "FieldsV1", "fieldsV1": set,
	})
}

// drop removes fields from the entries that match.
func (o *owners) drop(match func(entry) bool, set fields) {
	kept := make([]entry, 0, len(o.entries))
	for _, e := range o.entries {
		if match(e) {
			rest := minus(e.fields(), set)
			if len(rest) == 0 {
				continue
			}
			e = e.with(rest)
		}
		kept = append(kept, e)
	}
	o.entries = kept
}

// rename has the entries that match name another version. Entries of one manager that are about the same then become
// one.
func (o *owners) rename(match func(entry) bool, to string) {
	same := func(a, b entry) bool {
		return a["manager"] == b["manager"] && a["operation"] == b["operation"] && a["subresource"] == b["subresource"] && a["apiVersion"] == b["apiVersion"]
	}
	var kept []entry
	for _, e := range o.entries {
		if match(e) {
			e = maps.Clone(e)
			e["apiVersion"] = to
		}
		if i := slices.IndexFunc(kept, func(k entry) bool { return same(k, e) }); i >= 0 {
			kept[i] = kept[i].with(union(kept[i].fields(), e.fields()))
			continue
		}
		kept = append(kept, e)
	}
	o.entries = kept
}

// list returns the managedFields to write. None at all would mean that they stay as they are.
func (o *owners) list() []any {
	if len(o.entries) == 0 {
		return []any{map[string]any{}}
	}
	list := make([]any, len(o.entries))
	for i, e := range o.entries {
		list[i] = map[string]any(e)
	}
	return list
}

// Operations of managedFields.
const (
	opApply  = "Apply"
	opUpdate = "Update"
)

// withoutFinalizers is a set without the object's finalizers.
func withoutFinalizers(set fields) fields {
	return minus(set, fields{"f:metadata": fields{"f:finalizers": fields{}}})
}

// tool reports whether a manager is kubectl or Helm. What "kubectl rollout restart" writes stays: its
// removal would restart the Pods once more.
func tool(manager any) bool {
	name, _ := manager.(string)
	switch name {
	case "kubectl-rollout":
		return false
	case "kubectl", "helm":
		return true
	}
	return len(name) > len("kubectl-") && name[:len("kubectl-")] == "kubectl-"
}

// parents are the values in which the paths are.
func parents(paths []fingerprint.Path) []fingerprint.Path {
	var out []fingerprint.Path
	for _, p := range paths {
		if len(p) > 1 {
			out = append(out, slices.Clone(p[:len(p)-1]))
		}
	}
	return out
}

// defaults are the fields at some paths that an object has, that the manifest does not have, and that nobody owns.
func defaults(manifest, live map[string]any, own *owners, paths [][]string) fields {
	set := fields{}
	for _, path := range paths {
		parent, name := path[:len(path)-1], path[len(path)-1]
		ours, is := nested(manifest, parent)
		there, was := nested(live, parent)
		if !is || !was || ours[name] != nil || there[name] == nil || own.owned(path) {
			continue
		}
		found := fields{"f:" + name: fieldsOf(there[name])}
		for _, outer := range slices.Backward(parent) {
			found = fields{"f:" + outer: found}
		}
		set = union(set, found)
	}
	return set
}

// fieldsOf are the fields of a value, if it is a map.
func fieldsOf(value any) fields {
	set := fields{}
	if m, ok := value.(map[string]any); ok {
		for name, inner := range m {
			set["f:"+name] = fieldsOf(inner)
		}
		set["."] = fields{}
	}
	return set
}

// nested returns a map in an object.
func nested(object map[string]any, path []string) (map[string]any, bool) {
	for _, name := range path {
		inner, ok := object[name].(map[string]any)
		if !ok {
			return nil, false
		}
		object = inner
	}
	return object, true
}

// owned reports whether anybody owns a field or something below it.
func (o *owners) owned(path []string) bool {
	elements := make(fingerprint.Path, len(path))
	for i, name := range path {
		elements[i] = "f:" + name
	}
	return slices.ContainsFunc(o.entries, func(e entry) bool {
		_, ok := at(e.fields(), elements)
		return ok
	})
}
