package state

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// Touched is the annotation or label that the simulated other writer leaves on objects.
const Touched = "fault.kubesim/touched"

// ForeignCondition is the type of the condition that the simulated other writer adds to a status.
const ForeignCondition = "fault.kubesim/Touched"

// ForeignFinalizer is the finalizer that the simulated other writer puts on an object.
const ForeignFinalizer = "fault.kubesim/held"

// IsForeignCondition reports whether an element of a list is that condition.
func IsForeignCondition(element any) bool {
	m, ok := element.(map[string]any)
	return ok && m["type"] == ForeignCondition
}

// printer writes one object. It leaves out and renames on the way, so nothing is copied.
type printer struct {
	strings.Builder
	names  *names
	object Object
	key    string                   // of the object, if it has masked fields
	dash   bool                     // the next line begins an element of a list
	masked map[history.Field]string // the texts in masked fields
}

// andWhole comes between the path of a masked field and the same path once more in a rule: the first one becomes shorter
// on the way to the field.
const andWhole = "\x00"

// yaml returns an object without what differs from run to run.
func (n *names) yaml(x Object, o Options) string {
	sheet, _ := n.sheet(x, o)
	return sheet
}

// sheet is yaml, with the texts in masked fields.
func (n *names) sheet(x Object, o Options) (sheet string, masked map[history.Field]string) {
	p := &printer{names: n, object: x}
	rules := o.Foreign
	if len(o.Masked) > 0 {
		p.key = n.key(x)
		rules = slices.Clone(rules)
		for _, f := range o.Masked {
			if f.Object == p.key {
				rules = append(rules, strings.ReplaceAll(f.Path, "[", ".[")+andWhole+f.Path)
			}
		}
	}
	p.fields(0, x.Object.Object, rules, "", o.Lists[kindOf(x)])
	return p.String(), p.masked
}

// fields writes a map. rules are the paths to leave out, from here on; in is the field that
// holds the map, "" at the top and within lists. lists says which lists in it have no order.
func (p *printer) fields(indent int, m map[string]any, rules []string, in string, lists *Lists) {
	top := indent == 0
	for _, key := range sortedKeys(m, p.dash) {
		v := withoutForeign(key, m[key])
		if v == nil && m[key] != nil {
			continue
		}
		if top && key == "data" && p.object.Resource == "secrets" && p.object.Group == "" {
			v = decoded(v)
		}
		inner, drop := below(rules, key)
		if drop || p.isNoise(in, key, v, indent) || isEmptied(v, inner) || isEmptyList(v) {
			p.keep(rules, key, v)
			continue
		}
		if key == "observedGeneration" {
			v = p.observed(v)
		}
		p.lead(indent)
		p.WriteString(scalar(p.names.text(key)))
		p.WriteByte(':')
		p.value(indent, v, inner, key, lists.field(key))
	}
}

// keep keeps the texts of the masked fields in what is left out.
func (p *printer) keep(rules []string, key string, v any) {
	for _, r := range rules {
		if path, whole, ok := strings.Cut(r, andWhole); ok && path == key {
			if text, ok := v.(string); ok {
				if p.masked == nil {
					p.masked = map[history.Field]string{}
				}
				p.masked[history.Field{Object: p.key, Path: whole}] = text
			}
		}
	}
	if m, ok := v.(map[string]any); ok {
		inner, _ := below(rules, key)
		for key, v := range m {
			p.keep(inner, key, v)
		}
	}
}

// lead begins a line.
func (p *printer) lead(indent int) {
	if p.dash {
		p.dash = false
		p.indent(indent - 2)
		p.WriteString("- ")
		return
	}
	p.indent(indent)
}

// indent writes so many spaces.
func (p *printer) indent(n int) {
	const spaces = "                                "
	for ; n > len(spaces); n -= len(spaces) {
		p.WriteString(spaces)
	}
	p.WriteString(spaces[:n])
}

// value writes what comes after a key.
func (p *printer) value(indent int, v any, rules []string, key string, lists *Lists) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			p.WriteString(" {}\n")
			return
		}
		p.WriteByte('\n')
		p.fields(indent+2, v, rules, key, lists)
	case []any:
		if len(v) == 0 {
			p.WriteString(" []\n")
			return
		}
		p.WriteByte('\n')
		p.elements(indent, inOrder(key, v, lists), rules, lists.element())
	case string:
		p.WriteByte(' ')
		p.long(indent, p.names.text(v))
	default:
		p.WriteByte(' ')
		p.WriteString(number(v))
		p.WriteByte('\n')
	}
}

// elements writes a list.
func (p *printer) elements(indent int, list []any, rules []string, lists *Lists) {
	for i, v := range list {
		inner, drop := rules, false
		if len(rules) > 0 {
			inner, drop = below(rules, "["+strconv.Itoa(i)+"]")
			inner = append(inner, rules...) // a path without a number means each element
			if c, ok := v.(map[string]any); ok && !drop {
				_, drop = below(rules, fmt.Sprintf("[%v=%v]", c["type"], c["status"]))
			}
		}
		if drop {
			p.keep(rules, "["+strconv.Itoa(i)+"]", v)
			continue
		}
		if m, ok := v.(map[string]any); ok && len(m) > 0 {
			p.dash = true
			p.fields(indent+2, m, inner, "", lists)
			p.dash = false
			continue
		}
		p.indent(indent)
		p.WriteByte('-')
		p.value(indent+2, v, inner, "", lists)
	}
}

// long writes a string that may have lines.
func (p *printer) long(indent int, s string) {
	body := strings.TrimSuffix(s, "\n")
	plain := strings.Contains(body, "\n") && !strings.HasSuffix(body, "\n") && body[0] != ' ' && body[0] != '\n' &&
		!strings.ContainsFunc(body, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
	if !plain {
		p.WriteString(scalar(s))
		p.WriteByte('\n')
		return
	}
	p.WriteString("|")
	if body == s {
		p.WriteString("-")
	}
	p.WriteByte('\n')
	for line := range strings.SplitSeq(body, "\n") {
		p.indent(indent + 2)
		p.WriteString(line)
		p.WriteByte('\n')
	}
}

// isNoise reports whether a field means nothing.
func (p *printer) isNoise(in, key string, v any, indent int) bool {
	if key == "resourceVersion" || strings.HasSuffix(key, "ResourceVersion") {
		return true
	}
	switch {
	case in == "metadata" && indent == 2:
		switch key {
		case "uid", "managedFields", "selfLink", "creationTimestamp", "generation": // how often a spec was written on the way
			return true
		case "annotations", "labels":
			m, ok := v.(map[string]any)
			return ok && len(m) == 0 || isOnlyTouched(v)
		}
	case key == "annotations" || key == "labels": // operators copy them, for example into templates
		return isOnlyTouched(v)
	case in == "annotations" || in == "labels":
		return key == Touched
	case p.object.Resource == "services" && p.object.Group == "":
		return key == "nodePort" || key == "healthCheckNodePort" || key == "clusterIPs" || key == "clusterIP" && v != "None"
	}
	return false
}

// isOnlyTouched reports whether a map contains only the mark of the other writer.
func isOnlyTouched(v any) bool {
	m, ok := v.(map[string]any)
	_, marked := m[Touched]
	return ok && len(m) == 1 && marked
}

// withoutForeign leaves the other writer's condition or finalizer out of a list; nil if nothing is left of it.
func withoutForeign(key string, v any) any {
	foreign := IsForeignCondition
	switch key {
	case "conditions":
	case "finalizers":
		foreign = func(element any) bool { return element == ForeignFinalizer }
	default:
		return v
	}
	list, ok := v.([]any)
	if !ok || !slices.ContainsFunc(list, foreign) {
		return v
	}
	own := slices.DeleteFunc(slices.Clone(list), foreign)
	if len(own) == 0 {
		return nil
	}
	return own
}

// isEmptied reports whether a value is a map of which nothing is left but what is left out: the first to write into it
// made it.
func isEmptied(v any, rules []string) bool {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 || len(rules) == 0 {
		return false
	}
	for key := range m {
		if _, drop := below(rules, key); !drop && key != Touched {
			return false
		}
	}
	return true
}

// isEmptyList reports whether a value is a list without elements, which by the API conventions means the same as none.
func isEmptyList(v any) bool {
	list, ok := v.([]any)
	return ok && len(list) == 0
}

// SameButEmptyLists reports whether two versions of an object differ at most in their versions, in who wrote them, and in lists that one
// lacks and that are empty in the other.
func SameButEmptyLists(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(withoutEmptyLists(a.Object, true), withoutEmptyLists(b.Object, true))
}

// withoutEmptyLists copies a map without the empty lists in it and in its maps, and an object also without its versions and writers.
func withoutEmptyLists(m map[string]any, object bool) map[string]any {
	c := make(map[string]any, len(m))
	for key, v := range m {
		switch inner, isMap := v.(map[string]any); {
		case isEmptyList(v):
		case isMap:
			c[key] = withoutEmptyLists(inner, false)
		default:
			c[key] = v
		}
	}
	if meta, ok := c["metadata"].(map[string]any); ok && object {
		for _, key := range []string{"resourceVersion", "generation", "managedFields"} {
			delete(meta, key)
		}
	}
	return c
}

// observed says how far an observed generation is behind.
func (p *printer) observed(v any) any {
	g, ok := v.(int64)
	switch behind := p.object.Object.GetGeneration() - g; {
	case !ok:
		return v
	case behind > 0:
		return fmt.Sprintf("behind by %d", behind)
	case behind < 0:
		return fmt.Sprintf("ahead by %d", -behind)
	}
	return "current"
}

// below returns the paths that go on from a key, and whether one ends there.
func below(rules []string, key string) (inner []string, drop bool) {
	for _, r := range rules {
		if path, _, _ := strings.Cut(r, andWhole); path == key {
			return nil, true
		}
		if len(r) > len(key) && r[len(key)] == '.' && r[:len(key)] == key {
			inner = append(inner, r[len(key)+1:])
		}
	}
	return inner, false
}

// sortedKeys returns the keys of m in order; in an element of a list what names it comes first.
func sortedKeys(m map[string]any, element bool) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if !element {
		return keys
	}
	for _, first := range []string{"name", "type"} {
		if i := slices.Index(keys, first); i > 0 {
			copy(keys[1:i+1], keys[:i])
			keys[0] = first
		}
	}
	return keys
}

// inOrder sorts lists whose order means nothing: those that a schema calls a set or a map, finalizers, and elements
// that something names, such as owners, conditions and ports. The order in which containers start means something.
func inOrder(key string, list []any, lists *Lists) []any {
	by := lists.unordered()
	switch {
	case len(list) < 2 || key == "initContainers":
		return list
	case by != nil:
	case key == "finalizers":
		by = []string{""}
	default:
		field := keyOf(list)
		if field == "" {
			return list
		}
		by = []string{field}
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b any) int {
		for _, field := range by {
			if c := cmp.Compare(textOf(a, field), textOf(b, field)); c != 0 {
				return c
			}
		}
		return 0
	})
	return sorted
}

// keyOf is the field by which the elements of a list are named: no two have the same. It is empty if there
// is none.
func keyOf(list []any) string {
	for _, field := range naturalKeys {
		seen := make(map[string]bool, len(list))
		for _, e := range list {
			if m, ok := e.(map[string]any); ok && m[field] != nil {
				seen[textOf(e, field)] = true
			}
		}
		if len(seen) == len(list) {
			return field
		}
	}
	return ""
}

func textOf(v any, field string) string {
	if m, ok := v.(map[string]any); ok {
		v = m[field]
	}
	switch v := v.(type) {
	case string:
		return v
	case int64, float64:
		return fmt.Sprintf("%12v", v)
	}
	return ""
}

// decoded shows a Secret's data as text where it is text.
func decoded(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
		s, _ := v.(string)
		if b, err := base64.StdEncoding.DecodeString(s); err == nil && utf8.Valid(b) {
			out[k] = string(b)
		}
	}
	return out
}

// number writes what is no string, list or map.
func number(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.Quote(fmt.Sprint(v))
}

// scalar writes a string so that YAML reads it as that string.
func scalar(s string) string {
	switch s {
	case "", "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return strconv.Quote(s)
	}
	if c := s[0]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '/') || s[len(s)-1] == ' ' || s[len(s)-1] == ':' {
		return strconv.Quote(s)
	}
	for i := range len(s) {
		c := s[i]
		if c >= 0x7f || c < ' ' || c == '#' || c == ':' && s[i+1] == ' ' {
			return strconv.Quote(s)
		}
	}
	if l := strings.ToLower(s); len(s) <= 5 && (l == "true" || l == "false" || l == "null" || l == "yes" || l == "no" || l == "on" || l == "off" || l == "y" || l == "n") {
		return strconv.Quote(s)
	}
	return s
}
