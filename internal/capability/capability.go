// Package capability finds optional methods that would never be called: a method with another
// signature, a name that differs in case, or a pointer receiver where a value was passed. Go silently
// treats such a value as one without the method.
package capability

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// Check returns an error for each method of the interfaces optional that author seems to have but does
// not implement. The error shows both signatures.
func Check(author any, optional ...reflect.Type) error {
	t := reflect.TypeOf(author)
	if t == nil {
		return nil
	}
	var problems []error
	for _, wanted := range optional {
		if t.Implements(wanted) {
			continue
		}
		for m := range wanted.Methods() {
			problems = append(problems, missed(t, wanted, m))
		}
	}
	return errors.Join(problems...)
}

// missed compares the methods of t with the wanted one.
func missed(t, wanted reflect.Type, m reflect.Method) error {
	if has, ok := t.MethodByName(m.Name); ok {
		if got, want := signature(has.Type, 1), signature(m.Type, 0); got != want {
			return fmt.Errorf("%s has the method\n\t%s%s\nwhich is not called, because that of %s is\n\t%s%s",
				name(t), m.Name, got, name(wanted), m.Name, want)
		}
		return nil // another method of the interface is missing
	}
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(wanted) {
		return fmt.Errorf("%s of %s has a pointer receiver and is not called of a value: pass a pointer, &%s{...}", m.Name, name(t), short(t.Name()))
	}
	for has := range t.Methods() {
		if strings.EqualFold(has.Name, m.Name) {
			return fmt.Errorf("%s has the method %s, which is not called: that of %s is %s%s",
				name(t), has.Name, name(wanted), m.Name, signature(m.Type, 0))
		}
	}
	return nil
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
