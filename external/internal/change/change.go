// Package change describes how an external resource differs from the spec, and renders the
// differences.
package change

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/trace"
)

// Effect is what it takes to remove one difference.
type Effect int

const (
	// InPlace means that an Update removes the difference.
	InPlace Effect = iota
	// Recreate means that the resource must be deleted and created again.
	Recreate
	// Unsupported means that no call removes the difference; a user must change the spec.
	Unsupported
	// Ignored means that the difference is shown but not acted on.
	Ignored
)

// String returns the effect in one word.
func (e Effect) String() string {
	switch e {
	case InPlace:
		return "InPlace"
	case Recreate:
		return "Recreate"
	case Unsupported:
		return "Unsupported"
	case Ignored:
		return "Ignored"
	}
	return fmt.Sprintf("Effect(%d)", int(e))
}

// Change is one difference between the spec and the resource.
type Change struct {
	// Path is the field in the object, for example "spec.maxBytes".
	Path string
	// Want and Have are the values on both sides. They reach status and traces unless
	// Sensitive.
	Want, Have any
	// Effect is what it takes to remove the difference.
	Effect Effect
	// Sensitive values are never shown. Nor are strings in a field whose name ends like that of a
	// secret (password, token, ...).
	Sensitive bool
	// Remedy tells users the way out of an [Unsupported] change: "set spec.recreate to Allowed".
	// Empty means the general one.
	Remedy string
}

// List is a list of differences in a stable order.
type List []Change

// With returns the changes of one effect.
func (c List) With(e Effect) List {
	var out List
	for _, x := range c {
		if x.Effect == e {
			out = append(out, x)
		}
	}
	return out
}

// Acted returns the changes to act on.
func (c List) Acted() List {
	var out List
	for _, x := range c {
		if x.Effect != Ignored {
			out = append(out, x)
		}
	}
	return out
}

// ToRemove returns the changes that the next call is to make: a resource that is recreated needs
// no update.
func (c List) ToRemove() List {
	if recreated := c.With(Recreate); len(recreated) > 0 {
		return recreated
	}
	return c.With(InPlace)
}

// Repairable reports whether a call can remove one of the differences.
func (c List) Repairable() bool {
	return slices.ContainsFunc(c, func(x Change) bool { return x.Effect == InPlace || x.Effect == Recreate })
}

// Visible reports whether users can see what differs.
func (c List) Visible() bool {
	return slices.ContainsFunc(c, func(x Change) bool { return !x.hidden() })
}

// String returns all changes on one line: "spec.maxBytes 1024 → 2048, spec.subjects ...".
func (c List) String() string {
	parts := make([]string, len(c))
	for i, x := range c {
		parts[i] = x.String()
	}
	return strings.Join(parts, ", ")
}

// String returns the change for users: "spec.maxBytes 1024 → 2048", from the resource's value to
// the wanted one.
func (c Change) String() string {
	have, want := c.Shown()
	return c.Path + " " + have + " → " + want
}

// Shown renders both sides; sensitive ones are replaced.
func (c Change) Shown() (have, want string) {
	if c.hidden() {
		return trace.Redacted, trace.Redacted
	}
	return render(c.Have), render(c.Want)
}

// hidden reports whether the values must not be shown, because the driver says so or because they
// are strings in a field named like a secret.
func (c Change) hidden() bool {
	isText := func(x any) bool { return reflect.ValueOf(x).Kind() == reflect.String }
	return c.Sensitive || plain.NamesSecret(c.Path) && (isText(c.Want) || isText(c.Have))
}

// NotEnforced lists the differences that are not acted on.
func (c List) NotEnforced() string {
	var parts []string
	for _, x := range c.With(Ignored) {
		have, want := x.Shown()
		parts = append(parts, fmt.Sprintf("%s is %s, wanted %s", x.Path, have, want))
	}
	return strings.Join(parts, ", ")
}

// Remedy returns the way out of unsupported changes.
func (c List) Remedy() string {
	for _, x := range c.With(Unsupported) {
		if x.Remedy != "" {
			return plain.Text(x.Remedy)
		}
	}
	return "delete the object and create it again"
}

// Hash is the same for changes of the same fields to the same values, in any order, whatever the
// fields hold now: a value that varies between observations is no progress. It contains the values
// of sensitive fields only as a digest and never leaves the process.
func (c List) Hash() string {
	if len(c) == 0 {
		return ""
	}
	lines := make([]string, len(c))
	for i, x := range c {
		lines[i] = fmt.Sprintf("%q %s %q", x.Path, x.Effect, JSON(x.Want))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:12])
}

// Promote marks as Unsupported what only an Update could change.
func (c List) Promote() List {
	out := slices.Clone(c)
	for i := range out {
		if out[i].Effect == InPlace {
			out[i].Effect = Unsupported
		}
	}
	return out
}

// JSON returns a value as unambiguous text. It may call the value's own methods, and recovers from
// their panics.
func JSON(x any) string {
	b, err := guard.Call("the driver", "MarshalJSON", func() ([]byte, error) { return json.Marshal(x) })
	if err != nil {
		return fmt.Sprintf("%#v", x)
	}
	return string(b)
}

// longest is how much of a value is shown to users.
const longest = 80

// render returns a value for users, bounded and on one line.
func render(x any) string {
	text := value(x)
	if len(text) > longest {
		text = plain.Safe(text) // the whole text: half a secret could not be recognised as one
	}
	if len(text) <= longest {
		return text
	}
	cut := longest
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

func value(x any) string {
	v := reflect.ValueOf(x)
	if Empty(v) {
		return "unset"
	}
	if s, ok := x.(fmt.Stringer); ok {
		if text, err := guard.Call("the driver", "String", func() (string, error) { return s.String(), nil }); err == nil {
			return strconv.Quote(text)
		}
	}
	if v.Kind() == reflect.String {
		return strconv.Quote(v.String())
	}
	return JSON(x)
}

// Empty reports whether v is invalid or a slice or map without elements.
func Empty(v reflect.Value) bool {
	if !v.IsValid() {
		return true
	}
	return (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}
