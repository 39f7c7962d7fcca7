package external

import (
	"reflect"
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/external/internal/change"
)

// Effect is what it takes to remove a difference.
type Effect int

const (
	// InPlace: Update removes it.
	InPlace Effect = iota
	// Recreate: the resource must be deleted and created again.
	Recreate
	// Unsupported: no call can remove it; the spec must change.
	Unsupported
	// Ignored: it is shown in the status and otherwise ignored.
	Ignored
)

// String returns the name of the effect, as in "InPlace".
func (e Effect) String() string { return change.Effect(e).String() }

// Change is one difference between the spec and the external resource.
type Change struct {
	// Path is the field of the object, for example "spec.maxBytes".
	Path string
	// Want is the value in the spec, Have that of the resource. Unless Sensitive, they are shown in
	// the status and in traces.
	Want, Have any
	// Effect is what it takes to remove the difference. Zero means [InPlace].
	Effect Effect
	// Sensitive hides the values. Strings in fields with names like password or token are always
	// hidden.
	Sensitive bool
	// Remedy says what a user can do about an [Unsupported] change, as in "set spec.recreate to
	// Allowed". Empty means to delete the object and create it again.
	Remedy string
}

// Changes are all differences, in a deterministic order.
type Changes []Change

// Diff combines differences and sorts them by path.
//
//	return external.Diff(
//		external.Field("spec.maxBytes", s.Spec.MaxBytes, have.MaxBytes),
//		external.Recreates(external.Field("spec.storage", s.Spec.Storage, have.Storage)),
//		external.Immutable(external.Field("spec.version", s.Spec.Version, have.Version)),
//	)
func Diff(parts ...Changes) Changes {
	all := slices.Concat(parts...)
	slices.SortStableFunc(all, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// Field returns a difference that Update can remove, or nothing if the values are equal. A want
// that is unset (a nil pointer, slice or map) is not managed and never differs. Pointers are
// compared by what they point to. An empty want equals a nil or empty have.
//
// A want of any other type is always managed, even if it is zero. If zero means unset, use
// [Optional].
func Field(path string, want, have any) Changes {
	w, managed := settled(want)
	if !managed {
		return nil
	}
	h, _ := settled(have)
	if equal(w, h) {
		return nil
	}
	return Changes{{Path: path, Want: w, Have: h}}
}

// Optional is like [Field], but a want with the zero value is not managed.
func Optional[V any](path string, want V, have any) Changes {
	if v := reflect.ValueOf(&want).Elem(); v.IsZero() {
		return nil
	}
	return Field(path, want, have)
}

// Set is like [Field] for lists in which order and repetition have no meaning. A nil want is not
// managed.
func Set[V ~string](path string, want, have []V) Changes {
	if want == nil {
		return nil
	}
	return Field(path, ordered(want), ordered(have))
}

// Recreates sets the effect of differences to [Recreate].
func Recreates(parts ...Changes) Changes { return withEffect(Recreate, parts...) }

// Immutable sets the effect of differences to [Unsupported].
func Immutable(parts ...Changes) Changes { return withEffect(Unsupported, parts...) }

// Ignore sets the effect of differences to [Ignored].
func Ignore(parts ...Changes) Changes { return withEffect(Ignored, parts...) }

// Sensitive hides the values of differences; see [Change.Sensitive].
func Sensitive(parts ...Changes) Changes {
	all := slices.Concat(parts...)
	for i := range all {
		all[i].Sensitive = true
	}
	return all
}

// Has reports whether the field at path differs.
func (c Changes) Has(path string) bool {
	return slices.ContainsFunc(c, func(x Change) bool { return x.Path == path })
}

// With returns those changes whose effect is e.
func (c Changes) With(e Effect) Changes {
	var out Changes
	for _, x := range c {
		if x.Effect == e {
			out = append(out, x)
		}
	}
	return out
}

// String lists the changes on one line: "spec.maxBytes 1024 → 2048, spec.subjects ...".
func (c Changes) String() string { return c.list().String() }

// String formats the change as "spec.maxBytes 1024 → 2048", from the value of the resource to that
// of the spec.
func (c Change) String() string { return c.inner().String() }

// list converts c for the engine.
func (c Changes) list() change.List {
	if len(c) == 0 {
		return nil
	}
	out := make(change.List, len(c))
	for i, x := range c {
		out[i] = x.inner()
	}
	return out
}

func (c Change) inner() change.Change {
	return change.Change{Path: c.Path, Want: c.Want, Have: c.Have, Effect: change.Effect(c.Effect), Sensitive: c.Sensitive, Remedy: c.Remedy}
}

// changesOf converts a list of the engine.
func changesOf(list change.List) Changes {
	out := make(Changes, len(list))
	for i, x := range list {
		out[i] = Change{Path: x.Path, Want: x.Want, Have: x.Have, Effect: Effect(x.Effect), Sensitive: x.Sensitive, Remedy: x.Remedy}
	}
	return out
}

func withEffect(e Effect, parts ...Changes) Changes {
	all := slices.Concat(parts...)
	for i := range all {
		all[i].Effect = e
	}
	return all
}

// settled follows pointers and reports whether there is a value.
func settled(x any) (value any, managed bool) {
	v := reflect.ValueOf(x)
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil, false
	}
	if (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.IsNil() {
		return v.Interface(), false
	}
	return v.Interface(), true
}

// equal is deep equality in which named and plain types of one kind, nil and empty
// collections, and an absent and an empty collection do not differ.
func equal(a, b any) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if change.Empty(va) && change.Empty(vb) {
		return true
	}
	if !va.IsValid() || !vb.IsValid() {
		return false
	}
	if e, ok := equalMethod(va, vb); ok {
		return e
	}
	if n, ok := equalNumbers(va, vb); ok {
		return n
	}
	if va.Type() != vb.Type() && va.Kind() == vb.Kind() && vb.CanConvert(va.Type()) {
		vb = vb.Convert(va.Type())
	}
	if va.Type() == vb.Type() {
		return reflect.DeepEqual(va.Interface(), vb.Interface())
	}
	return change.JSON(a) == change.JSON(b)
}

// equalMethod asks the value's own Equal method, as time.Time and resource.Quantity have.
func equalMethod(a, b reflect.Value) (result, ok bool) {
	m := a.MethodByName("Equal")
	if !m.IsValid() || a.Type() != b.Type() {
		return false, false
	}
	t := m.Type()
	if t.NumIn() != 1 || t.IsVariadic() || t.In(0) != b.Type() || t.NumOut() != 1 || t.Out(0).Kind() != reflect.Bool {
		return false, false
	}
	return m.Call([]reflect.Value{b})[0].Bool(), true
}

// equalNumbers compares integers of any width and sign.
func equalNumbers(a, b reflect.Value) (result, ok bool) {
	switch {
	case a.CanInt() && b.CanInt():
		return a.Int() == b.Int(), true
	case a.CanUint() && b.CanUint():
		return a.Uint() == b.Uint(), true
	case a.CanInt() && b.CanUint():
		return a.Int() >= 0 && uint64(a.Int()) == b.Uint(), true
	case a.CanUint() && b.CanInt():
		return b.Int() >= 0 && uint64(b.Int()) == a.Uint(), true
	}
	return false, false
}

func ordered[V ~string](in []V) []V {
	out := slices.Clone(in)
	slices.Sort(out)
	out = slices.Compact(out)
	if out == nil {
		return []V{}
	}
	return out
}
