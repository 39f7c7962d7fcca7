package invariant

import (
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// deletedByRaces are the objects that a user deleted besides the scenario's steps.
func (x *index) deletedByRaces() (all []*life) {
	for _, f := range x.run.Faults {
		if f.Kind != "race" {
			continue
		}
		for i := range x.run.Changes {
			c := &x.run.Changes[i]
			if c.By == "user" && c.Before != nil && c.At.Equal(f.Time) && (c.After == nil || c.Before.GetDeletionTimestamp() == nil && c.After.GetDeletionTimestamp() != nil) {
				all = append(all, x.lives[string(c.Before.GetUID())])
			}
		}
	}
	return all
}

// withoutDependents leaves out of two states what depends on an object that a user deleted by a race and that is gone:
// the objects of others that name it, and what was made for them. What an operator does with them without that
// object is usually right, and depends on the moment at which it went.
func (x *index) withoutDependents(want, got history.State) (_, _ history.State) {
	left := map[dependent]bool{}
	for _, victim := range x.deletedByRaces() {
		if sheet, back := got.Objects[victim.key]; back && sheet != history.Gone {
			continue
		}
		for _, l := range x.all {
			if _, both := want.Objects[l.key]; !both || l.by == operator {
				continue
			}
			if o := parsed(got.Objects[l.key]); o != nil && mentions(o["spec"], victim.name[strings.LastIndexByte(victim.name, '/')+1:]) {
				kind, _ := o["kind"].(string)
				left[dependent{l.key, kind, l.name}] = true
			}
		}
	}
	if len(left) == 0 {
		return want, got
	}
	return without(want, left), without(got, left)
}

// dependent is an object that names another one.
type dependent struct{ key, kind, name string }

// without leaves objects out of a state, and what was made for them.
func without(s history.State, left map[dependent]bool) history.State {
	is := func(which func(d dependent) bool) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(left)), which)
	}
	s.Objects = maps.Clone(s.Objects)
	maps.DeleteFunc(s.Objects, func(key, sheet string) bool {
		kind, owner := ownerIn(sheet)
		_, full, _ := strings.Cut(key, " ")
		if namespace, _, ok := strings.Cut(full, "/"); ok {
			owner = namespace + "/" + owner
		}
		return is(func(d dependent) bool { return d.key == key || d.kind == kind && d.name == owner })
	})
	s.Resources = slices.DeleteFunc(slices.Clone(s.Resources), func(t history.Resource) bool {
		owner := strings.TrimSuffix(strings.TrimPrefix(t.Owner, "uid("), ")")
		return is(func(d dependent) bool { return d.key == owner || d.name == owner })
	})
	return s
}

// ownerIn returns the kind and the name of the first owner of an object.
func ownerIn(sheet string) (kind, name string) {
	metadata, _ := parsed(sheet)["metadata"].(map[string]any)
	owners, _ := metadata["ownerReferences"].([]any)
	if len(owners) == 0 {
		return "", ""
	}
	m, _ := owners[0].(map[string]any)
	kind, _ = m["kind"].(string)
	name, _ = m["name"].(string)
	return kind, name
}

// parsed is an object of a state; nil if there is none.
func parsed(sheet string) (o map[string]any) {
	if sheet == "" || yaml.Unmarshal([]byte(sheet), &o) != nil {
		return nil
	}
	return o
}

// mentions reports whether a name is one of the values in v.
func mentions(v any, name string) bool {
	switch v := v.(type) {
	case string:
		return v == name
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return mentions(e, name) })
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), func(e any) bool { return mentions(e, name) })
	}
	return false
}
