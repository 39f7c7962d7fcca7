// Package change is how an external resource differs from the spec, and how that is shown.
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

// Change is one difference between what is wanted and what is there.
type Change struct {
	// Path is the field in the object, for example "spec.maxBytes".
	Path string
	// Want and Have are the values on both sides. They reach status and traces unless
	// Sensitive.
	Want, Have any
	// Effect is what it takes.
	Effect Effect
	// Sensitive values are never shown. Texts in a field whose name ends in that of a secret
	// (password, token, ...) are not either.
	Sensitive bool
	// Remedy is the way out of an [Unsupported] change, for whoever reads the status: "set
	// spec.recreate to Allowed". Empty means the general one.
	Remedy string
}

// List is some differences, in an order that does not vary.
type List []Change

// With keeps the changes of one effect.
func (c List) With(e Effect) List {
	var out List
	for _, x := range c {
		if x.Effect == e {
			out = append(out, x)
		}
	}
	return out
}

// Acted are the changes to act on.
func (c List) Acted() List {
	var out List
	for _, x := range c {
		if x.Effect != Ignored {
			out = append(out, x)
		}
	}
	return out
}

// ToRemove are the changes that the next call is to make: a thing that is made anew needs no
// update.
func (c List) ToRemove() List {
	if anew := c.With(Recreate); len(anew) > 0 {
		return anew
	}
	return c.With(InPlace)
}

// Repairable tells whether a call can make one of the differences go away.
func (c List) Repairable() bool {
	return slices.ContainsFunc(c, func(x Change) bool { return x.Effect == InPlace || x.Effect == Recreate })
}

// Visible tells whether people can see what differs.
func (c List) Visible() bool {
	return slices.ContainsFunc(c, func(x Change) bool { return !x.hidden() })
}

// String names every change in one line: "spec.maxBytes 1024 → 2048, spec.subjects ...".
func (c List) String() string {
	parts := make([]string, len(c))
	for i, x := range c {
		parts[i] = x.String()
	}
	return strings.Join(parts, ", ")
}

// String is the change for people: "spec.maxBytes 1024 → 2048", from what is there to what
// is wanted.
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

// hidden: the values are not to be shown, because the author says so or because the field's name
// does and they are texts.
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

// Remedy is the way out of changes that are not supported.
func (c List) Remedy() string {
	for _, x := range c.With(Unsupported) {
		if x.Remedy != "" {
			return plain.Text(x.Remedy)
		}
	}
	return "delete the object and create it again"
}

// Hash is the same for changes of the same fields to the same values, in any order, whatever
// the fields hold now: a value that varies from look to look is no progress. It holds values
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

// Promote says of what only an Update could change that nothing can.
func (c List) Promote() List {
	out := slices.Clone(c)
	for i := range out {
		if out[i].Effect == InPlace {
			out[i].Effect = Unsupported
		}
	}
	return out
}

// JSON is a value as unambiguous text. The value's own methods may be called, and panic.
func JSON(x any) string {
	b, err := guard.Call("the driver", "MarshalJSON", func() ([]byte, error) { return json.Marshal(x) })
	if err != nil {
		return fmt.Sprintf("%#v", x)
	}
	return string(b)
}

// longest is how much of a value is shown to people.
const longest = 80

// render is a value for people, bounded and on one line.
func render(x any) string {
	text := value(x)
	if len(text) > longest {
		text = plain.Safe(text) // whole: of half a secret nothing tells that it is one
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

// Empty is true for nothing at all and for collections without elements.
func Empty(v reflect.Value) bool {
	if !v.IsValid() {
		return true
	}
	return (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}
