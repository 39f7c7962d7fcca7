package external

import (
	"reflect"
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/external/internal/change"
)

// Effect is what it takes to make one difference go away.
type Effect int

const (
	// InPlace: an Update does it.
	InPlace Effect = iota
	// Recreate: the thing must be deleted and created anew.
	Recreate
	// Unsupported: no call can do it; a person must change the spec.
	Unsupported
	// Ignored: shown, not acted on.
	Ignored
)

// String is the effect in one word.
func (e Effect) String() string { return change.Effect(e).String() }

// Change is one difference between what is wanted and what is there.
type Change struct {
	// Path is the field in the object, for example "spec.maxBytes".
	Path string
	// Want and Have are the values on both sides. They reach status and traces unless
	// Sensitive.
	Want, Have any
	// Effect is what it takes. The zero value is [InPlace].
	Effect Effect
	// Sensitive values are never shown. Texts in a field whose name ends in that of a secret
	// (password, token, ...) are not either.
	Sensitive bool
	// Remedy is the way out of an [Unsupported] change, for whoever reads the status: "set
	// spec.recreate to Allowed". Empty means the general one.
	Remedy string
}

// Changes are all differences, in an order that does not vary.
type Changes []Change

// Diff collects the differences that its parts report, ordered by path.
//
//	return external.Diff(
//		external.Field("spec.maxBytes", s.Spec.MaxBytes, have.MaxBytes),
//		external.Recreates(external.Field("spec.storage", s.Spec.Storage, have.Storage)),
//		external.Immutable("spec.version", s.Spec.Version, have.Version),
//	)
func Diff(parts ...Changes) Changes {
	all := slices.Concat(parts...)
	slices.SortStableFunc(all, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// Field reports a difference that an Update can remove, or nothing if the values are
// equal. A want that is unset (a nil pointer, slice or map) is not managed and never
// differs; a pointer is compared by what it points to. Empty and nil slices and maps on
// the side of have are equal to an empty want.
//
// A plain want is always managed, its zero value too. For "zero means unset" say
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

// Optional is [Field] for a want whose zero value means unset.
func Optional[V any](path string, want V, have any) Changes {
	if v := reflect.ValueOf(&want).Elem(); v.IsZero() {
		return nil
	}
	return Field(path, want, have)
}

// Set is [Field] for lists whose order and repetitions carry no meaning. A nil want is not
// managed.
func Set[V ~string](path string, want, have []V) Changes {
	if want == nil {
		return nil
	}
	return Field(path, ordered(want), ordered(have))
}

// Immutable is a [Field] that no call can change.
func Immutable(path string, want, have any) Changes {
	return withEffect(Unsupported, Field(path, want, have))
}

// Recreates gives differences the effect [Recreate].
func Recreates(parts ...Changes) Changes { return withEffect(Recreate, parts...) }

// Refused gives differences the effect [Unsupported].
func Refused(parts ...Changes) Changes { return withEffect(Unsupported, parts...) }

// Ignore gives differences the effect [Ignored].
func Ignore(parts ...Changes) Changes { return withEffect(Ignored, parts...) }

// Secret marks differences whose values must not be shown.
func Secret(parts ...Changes) Changes {
	all := slices.Concat(parts...)
	for i := range all {
		all[i].Sensitive = true
	}
	return all
}

// Has tells whether the field at path differs.
func (c Changes) Has(path string) bool {
	return slices.ContainsFunc(c, func(x Change) bool { return x.Path == path })
}

// With keeps the changes of one effect.
func (c Changes) With(e Effect) Changes {
	var out Changes
	for _, x := range c {
		if x.Effect == e {
			out = append(out, x)
		}
	}
	return out
}

// String names every change in one line: "spec.maxBytes 1024 → 2048, spec.subjects ...".
func (c Changes) String() string { return c.list().String() }

// String is the change for people: "spec.maxBytes 1024 → 2048", from what is there to what
// is wanted.
func (c Change) String() string { return c.inner().String() }

// list is c as the engine has it.
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

// changesOf are changes as an author has them.
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

// settled follows pointers and tells whether anything is there.
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
