// Package capability finds optional methods that would never be called: a method with another
// signature, a misspelt name, or a pointer receiver where a value was passed. Go silently treats such
// a value as one without the method.
package capability

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Interfaces are those of one package that authors implement.
type Interfaces struct {
	// Required is what every author implements; the compiler checks it.
	Required reflect.Type
	// Optional are found by their methods.
	Optional []reflect.Type
	// Requests reports whether types of the package of Required whose names end in Request are
	// parameters of its methods alone. An exported method with such a parameter is then meant to be
	// called, whatever its name.
	Requests bool
}

// Check returns an error for each exported method that author has, or that a pointer to it has, which
// seems meant for one of the optional interfaces but is not called. The errors show what would be.
func (in Interfaces) Check(author any) error {
	t := reflect.TypeOf(author)
	if t == nil {
		return nil
	}
	var problems []error
	for _, wanted := range in.Optional {
		if t.Implements(wanted) {
			continue
		}
		for m := range wanted.Methods() {
			problems = append(problems, missed(t, wanted, m))
		}
	}
	return errors.Join(append(problems, in.unknown(t)...)...)
}

// methodsOf returns the type with all methods that a pointer to a value of t would have.
func methodsOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return t
	}
	return reflect.PointerTo(t)
}

// missed compares the method of t that has the name of the wanted one.
func missed(t, wanted reflect.Type, m reflect.Method) error {
	has, ok := methodsOf(t).MethodByName(m.Name)
	if !ok {
		return nil
	}
	if got, want := signature(has.Type, 1), signature(m.Type, 0); got != want {
		return fmt.Errorf("%s has the method\n\t%s%s\nwhich is not called, because that of %s is\n\t%s%s",
			name(t), m.Name, got, name(wanted), m.Name, want)
	}
	if _, ok := t.MethodByName(m.Name); !ok {
		return fmt.Errorf("%s of %s has a pointer receiver and is not called of a value: pass a pointer, &%s{...}", m.Name, name(t), short(t.Name()))
	}
	return nil // another method of the interface is missing
}

// unknown returns an error for each method of t that is part of none of the interfaces and seems to be
// meant for one.
func (in Interfaces) unknown(t reflect.Type) []error {
	all := append([]reflect.Type{in.Required}, in.Optional...)
	var problems []error
	for has := range methodsOf(t).Methods() {
		if slices.ContainsFunc(all, func(i reflect.Type) bool { _, known := i.MethodByName(has.Name); return known }) {
			continue
		}
		wanted, meant, near := nearest(all, has.Name)
		request, takes := in.request(has.Type)
		switch {
		case near && (takes || strings.EqualFold(has.Name, meant.Name) || signature(has.Type, 1) == signature(meant.Type, 0)):
			problems = append(problems, fmt.Errorf("%s has the method %s, which is not called: that of %s is %s%s",
				name(t), has.Name, name(wanted), meant.Name, signature(meant.Type, 0)))
		case takes:
			problems = append(problems, fmt.Errorf("%s has the method %s with a parameter of type %s, which is not called, because no interface of package %s has it: "+
				"rename it, or unexport it if you call it yourself", name(t), has.Name, name(request), path(in.Required)))
		}
	}
	return problems
}

// request returns the first parameter of a method of a concrete type that only methods of the
// interfaces have.
func (in Interfaces) request(method reflect.Type) (reflect.Type, bool) {
	for i := 1; in.Requests && i < method.NumIn(); i++ {
		p := method.In(i)
		if p.Kind() == reflect.Pointer {
			p = p.Elem()
		}
		plain, _, _ := strings.Cut(p.Name(), "[")
		if p.PkgPath() == in.Required.PkgPath() && strings.HasSuffix(plain, "Request") {
			return p, true
		}
	}
	return nil, false
}

// mostTypos is the edit distance up to which a name is taken for another one that is misspelt.
const mostTypos = 2

// nearest returns the method whose name is nearest to a name, if one is near enough.
func nearest(all []reflect.Type, name string) (wanted reflect.Type, meant reflect.Method, near bool) {
	least := mostTypos + 1
	for _, i := range all {
		for m := range i.Methods() {
			if d := distance(strings.ToLower(name), strings.ToLower(m.Name)); d < least {
				wanted, meant, least = i, m, d
			}
		}
	}
	return wanted, meant, least <= mostTypos
}

// distance is how many letters have to be put in, taken out or replaced to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// path returns the name of the package of a type as an author writes it.
func path(t reflect.Type) string {
	before, _, _ := strings.Cut(name(t), ".")
	return before
}

// folders matches the import path that package reflect puts before the names of type arguments.
var folders = regexp.MustCompile(`[\w.~-]+/`)

// name returns a type as an author writes it.
func name(t reflect.Type) string { return short(t.String()) }

func short(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(folders.ReplaceAllString(name, ""), ", ", ","), ",", ", ")
}

// signature returns the signature of a method without its name, starting at parameter first. The receiver
// of a concrete type is parameter 0.
func signature(method reflect.Type, first int) string {
	var in, out []string
	for i := first; i < method.NumIn(); i++ {
		p := name(method.In(i))
		if method.IsVariadic() && i == method.NumIn()-1 {
			p = "..." + name(method.In(i).Elem())
		}
		in = append(in, p)
	}
	for o := range method.Outs() {
		out = append(out, name(o))
	}
	results := strings.Join(out, ", ")
	switch len(out) {
	case 0:
	case 1:
		results = " " + results
	default:
		results = " (" + results + ")"
	}
	return "(" + strings.Join(in, ", ") + ")" + results
}
