package state

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// Difference is one thing in which two states differ.
type Difference struct {
	// Subject is the kind and the field, without names: "statefulsets.apps spec.replicas".
	Subject string
	// Text says what is different, in one sentence.
	Text string
	// Path is the field, Of the object and Was and Is the values, if it is about a field.
	Path, Of, Was, Is string
}

// Differences lists what differs between the state that was wanted and the one that was reached: how many
// objects and external resources there are first, then fields, then what random fields have in common.
func Differences(want, got history.State) []Difference {
	x, y := sheets(want, got), sheets(got, want)
	var fields []Difference
	kept := map[member]*tally{}
	for _, key := range slices.Sorted(maps.Keys(x)) {
		after, both := y[key]
		if !both {
			kept[memberOf(key, x[key])] = &tally{}
			continue
		}
		if after != x[key] {
			fields = append(fields, differingFields(key, x[key], after)...)
		}
	}
	for key, sheet := range y {
		if _, both := x[key]; !both {
			kept[memberOf(key, sheet)] = &tally{}
		}
	}
	for key, sheet := range x {
		if t := kept[memberOf(key, sheet)]; t != nil {
			t.want++
		}
	}
	for key, sheet := range y {
		if t := kept[memberOf(key, sheet)]; t != nil {
			t.got++
		}
	}
	return slices.Concat(described(kept), fields, unbound(want, got))
}

// member is the objects of a kind that have one owner, or one object without an owner.
type member struct{ kind, title, owner string }

// tally is how many members there are to be, and are.
type tally struct{ want, got int }

// described says which members are missing and which are too many.
func described(all map[member]*tally) (found []Difference) {
	inOrder := func(a, b member) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.owner, b.owner), cmp.Compare(a.title, b.title))
	}
	for _, m := range slices.SortedFunc(maps.Keys(all), inOrder) {
		t := all[m]
		d := Difference{Subject: m.kind + " missing"}
		switch {
		case t.got > t.want:
			d.Subject = m.kind + " too many"
		case t.got == t.want:
			d.Subject = m.kind + " others"
		}
		switch {
		case m.owner == "" && t.got < t.want:
			d.Text = m.title + " is missing"
		case m.owner == "":
			d.Text = m.title + " exists, which it does not without the disturbance"
		case t.got == t.want:
			d.Text = fmt.Sprintf("%s has another %s than without the disturbance", m.owner, m.title)
		default:
			d.Text = fmt.Sprintf("%s has %s, %s without the disturbance", m.owner, several(t.got, m.title), several(t.want, ""))
		}
		found = append(found, d)
	}
	return found
}

func several(n int, what string) string {
	text := "no"
	if n > 0 {
		text = fmt.Sprint(n)
	}
	switch {
	case what == "" && n == 0:
		return "none"
	case what == "":
		return text
	case n == 1:
		return text + " " + what
	case strings.HasPrefix(what, "external resource "):
		return text + " external resources" + strings.TrimPrefix(what, "external resource")
	case strings.HasSuffix(what, "s"):
		return text + " " + what + "es"
	case strings.HasSuffix(what, "y"):
		return text + " " + strings.TrimSuffix(what, "y") + "ies"
	}
	return text + " " + what + "s"
}

// memberOf says what a sheet is one of.
func memberOf(key, sheet string) member {
	resource, name, _ := strings.Cut(key, " ")
	if resource == "external" {
		kind, id, _ := strings.Cut(name, " ")
		owner := ownerLine(sheet)
		if owner == "" {
			return member{kind: "external " + kind, title: "external resource " + kind + " " + id}
		}
		return member{"external " + kind, fmt.Sprintf("external resource of kind %q", kind), owner}
	}
	var o map[string]any
	if yaml.Unmarshal([]byte(sheet), &o) != nil {
		return member{kind: resource, title: key}
	}
	kind, _ := o["kind"].(string)
	kind = cmp.Or(kind, resource)
	metadata, _ := o["metadata"].(map[string]any)
	owners, _ := metadata["ownerReferences"].([]any)
	for _, e := range owners {
		if m, ok := e.(map[string]any); ok {
			namespace, _, both := strings.Cut(name, "/")
			owner := fmt.Sprint(m["name"])
			if both {
				owner = namespace + "/" + owner
			}
			return member{resource, kind, fmt.Sprintf("%v %s", m["kind"], owner)}
		}
	}
	return member{kind: resource, title: kind + " " + name}
}

// ownerLine is the owner in the sheet of an external resource, or says that it is gone.
func ownerLine(sheet string) string {
	first, _, _ := strings.Cut(sheet, "\n")
	owner := strings.Trim(strings.TrimPrefix(first, "owner: "), `"`)
	if owner == uidOfGone {
		return "an object that is gone"
	}
	return strings.TrimSuffix(strings.TrimPrefix(owner, "uid("), ")")
}

// differingFields are the fields in which two sheets differ.
func differingFields(key, a, b string) []Difference {
	var before, now any
	resource, name, _ := strings.Cut(key, " ")
	if resource == "external" {
		kind, _, _ := strings.Cut(name, " ")
		resource, name = "external "+kind, key
	}
	if yaml.Unmarshal([]byte(a), &before) != nil || yaml.Unmarshal([]byte(b), &now) != nil {
		return []Difference{{Subject: resource, Text: key + " differs", Of: key}}
	}
	if o, ok := now.(map[string]any); ok && o["kind"] != nil {
		name = fmt.Sprintf("%v %s", o["kind"], name)
	}
	all := deleting(resource, name, before, now)
	leaves("", before, now, byName, func(path string, x, y any) {
		if len(all) > 0 && (path == deletionTime || path == deletionGrace) {
			return
		}
		text := fmt.Sprintf("%s of %s is %s, %s without the disturbance", path, name, short(y), short(x))
		switch {
		case y == nil:
			text = fmt.Sprintf("%s of %s is missing, without the disturbance it is %s", path, name, short(x))
		case x == nil:
			text = fmt.Sprintf("%s of %s is %s, and missing without the disturbance", path, name, short(y))
		}
		subject := resource + " " + path
		if path == "state" && strings.HasPrefix(resource, "external ") {
			subject = strings.TrimSuffix(subject+" "+differingParts(x, y), " ")
		}
		all = append(all, Difference{subject, text, path, name, short(x), short(y)})
	})
	return all
}

// The fields that say that an object is being deleted.
const (
	deletionTime  = "metadata.deletionTimestamp"
	deletionGrace = "metadata.deletionGracePeriodSeconds"
)

// deleting says that only one of two forms of an object is being deleted, if that is so. Its grace period says nothing more.
func deleting(resource, name string, before, now any) []Difference {
	x, y := timeOfDeletion(before), timeOfDeletion(now)
	if (x == nil) == (y == nil) {
		return nil
	}
	text := name + " is being deleted, which it is not without the disturbance"
	if y == nil {
		text = name + " is not being deleted, which it is without the disturbance"
	}
	return []Difference{{resource + " " + deletionTime, text, deletionTime, name, short(x), short(y)}}
}

func timeOfDeletion(object any) any {
	o, _ := object.(map[string]any)
	metadata, _ := o["metadata"].(map[string]any)
	return metadata["deletionTimestamp"]
}

// differingParts names the parts in which two states of an external resource differ, if both have the same named
// parts: "flags, plugins" for "flags: all, plugins: a". Different mistakes lose different parts.
func differingParts(x, y any) string {
	before, names := partsOf(x)
	now, same := partsOf(y)
	if len(names) < 2 || !slices.Equal(names, same) {
		return ""
	}
	var differ []string
	for i, name := range names {
		if before[i] != now[i] {
			differ = append(differ, name)
		}
	}
	return strings.Join(differ, ", ")
}

// partsOf splits a text such as "size 1, started true", and returns the names of its parts; no names if a part has none.
func partsOf(v any) (parts, names []string) {
	text, _ := v.(string)
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' || r == '\n' }) {
		part = strings.TrimSpace(part)
		end := strings.IndexAny(part, ":= ")
		if end <= 0 {
			return nil, nil
		}
		parts, names = append(parts, part), append(names, part[:end])
	}
	return parts, names
}

// short is a value for a sentence.
func short(v any) string {
	const most = 60
	text := fmt.Sprint(v)
	switch v := v.(type) {
	case string:
		text = fmt.Sprintf("%q", v)
	case map[string]any, []any:
		if c, ok := v.(map[string]any); ok && c["status"] != nil && c["reason"] != nil { // a condition
			text = fmt.Sprintf("%v (%v)", c["status"], c["reason"])
		} else if b, err := yaml.Marshal(v); err == nil {
			text = strings.Join(strings.Fields(string(b)), " ")
		}
	case nil:
		text = "missing"
	}
	if utf8.RuneCountInString(text) > most {
		return string([]rune(text)[:most]) + "…"
	}
	return text
}

// leaves calls do for each value that differs. Elements of lists are known by what named returns for both lists; where that is nil,
// a list is one value.
func leaves(path string, a, b any, named func(a, b []any) (x, y map[string]any), do func(path string, a, b any)) {
	if reflect.DeepEqual(a, b) {
		return
	}
	x, isMap := a.(map[string]any)
	y, both := b.(map[string]any)
	join := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	if !isMap || !both {
		first, ok := a.([]any)
		second, also := b.([]any)
		if x, y = named(first, second); !ok || !also || x == nil || y == nil {
			do(path, a, b)
			return
		}
		join = func(key string) string { return path + "[" + key + "]" }
	}
	keys := maps.Clone(x)
	maps.Copy(keys, y)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		leaves(join(key), x[key], y[key], named, do)
	}
}

// byIndex returns the elements of two lists of the same length by their numbers, and nil for others.
func byIndex(a, b []any) (x, y map[string]any) {
	if len(a) != len(b) {
		return nil, nil
	}
	x, y = map[string]any{}, map[string]any{}
	for i := range a {
		x[strconv.Itoa(i)], y[strconv.Itoa(i)] = a[i], b[i]
	}
	return x, y
}

// byName returns the elements of two lists by what names them, and nil if nothing does.
func byName(a, b []any) (x, y map[string]any) { return byKey(a), byKey(b) }

// byKey returns the elements of a list by what names them; nil if nothing does.
func byKey(list []any) map[string]any {
	field := keyOf(list)
	if field == "" {
		return nil
	}
	all := make(map[string]any, len(list))
	for _, e := range list {
		all[strings.TrimSpace(textOf(e, field))] = e
	}
	return all
}

// naturalKeys are fields that name an element of a list.
//
//arch:state a list that never changes
var naturalKeys = []string{"name", "type", "key", "port", "containerPort", "mountPath", "ip", "id"}
