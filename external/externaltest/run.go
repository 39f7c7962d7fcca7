package externaltest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/guard"
)

// Run checks a driver. Each thing that is checked is a subtest.
func Run[T external.Object, C, O any](t *testing.T, d external.Driver[T, C, O], f Fixture[T, C]) {
	t.Helper()
	for _, r := range Check(t.Context(), d, f) {
		t.Run(r.Name, func(t *testing.T) {
			if r.Skipped != "" {
				t.Skip(r.Skipped)
			}
			if r.Err != nil {
				t.Error(r.Err)
			}
		})
	}
}

// Result is the outcome of one check.
type Result struct {
	// Name says what was checked.
	Name string
	// Err is what is wrong; nil if nothing is.
	Err error
	// Skipped is why it was not checked; empty if it was.
	Skipped string
}

// Check is [Run] for other testing frameworks. It returns the results in the order in which the checks were made; those that
// depend on what failed are skipped.
func Check[T external.Object, C, O any](ctx context.Context, d external.Driver[T, C, O], f Fixture[T, C]) []Result {
	if d == nil || f.New == nil || reflect.TypeFor[T]().Kind() != reflect.Pointer {
		return []Result{{Name: "fixture", Err: errors.New("externaltest needs a driver, and a Fixture with Client and New; T is a pointer to a struct")}}
	}
	k := &kit[T, C, O]{driver: d, f: f}
	defer k.clean(context.WithoutCancel(ctx))
	var results []Result
	stopped := ""
	for _, c := range k.checks() {
		r := Result{Name: c.name}
		switch {
		case stopped != "":
			r.Skipped = stopped
		default:
			r.Skipped, r.Err = k.run(ctx, c)
		}
		if r.Err != nil && c.needed && stopped == "" {
			stopped = fmt.Sprintf("%q failed", c.name)
		}
		results = append(results, r)
	}
	return results
}

// check is one thing to find out.
type check struct {
	name string
	run  func(context.Context) error
	// unless is why the driver need not be checked; empty if it must.
	unless string
	// needed: the checks after this one build on it.
	needed bool
}

func (k *kit[T, C, O]) run(ctx context.Context, c check) (skipped string, err error) {
	if c.unless != "" {
		return c.unless, nil
	}
	_, err = guard.Call("the driver", c.name, func() (struct{}, error) { return struct{}{}, c.run(ctx) })
	return "", err
}

// unless returns why, if cond holds.
func unless(cond bool, why string) string {
	if cond {
		return why
	}
	return ""
}

// checks are all checks, in the order in which they are made.
func (k *kit[T, C, O]) checks() []check {
	o, d := k.f.Options, any(k.driver)
	_, updates := d.(external.Updater[T, C, O])
	_, marks := d.(external.Marker[T, C])
	_, unmarks := d.(external.Unmarker[T, C])
	_, finds := d.(external.Finder[T, C])
	_, reflects := d.(external.Reflector[T, O])
	all := []check{
		{name: "a name is always the same", run: k.stableName, needed: true},
		{name: "what does not exist is Missing", run: k.missing, unless: unless(o.AssignedIDs, "the API assigns ids, so nothing is observed before it is created")},
		{name: "Compare with an empty resource", run: k.compareEmpty},
		{name: "Delete of what does not exist succeeds", run: k.deleteMissing, unless: unless(o.AssignedIDs, "the API assigns ids")},
		{name: "Create", run: k.create, needed: true},
		{name: "the mark is stored", run: k.marked, unless: unless(o.Unmarked, "the API stores no marks")},
		{name: "the resource matches the spec after Create", run: k.converged, needed: true},
		{name: "Compare is pure", run: k.comparePure},
		{name: "Observe changes nothing", run: k.observePure},
		{name: "Reflect changes only the status", run: k.reflect, unless: unless(!reflects, "the driver is no Reflector")},
		{name: "another ID is another resource", run: k.otherID, unless: unless(o.AssignedIDs, "the API assigns ids")},
		{name: "Create again makes no second resource", run: k.createAgain, unless: unless(!o.UniqueNames && !o.Tokens, "neither UniqueNames nor Tokens is set: it is not called again while its effect may be there")},
		{name: "Create for another object takes nothing over", run: k.createForOther, unless: unless(!o.UniqueNames || o.AssignedIDs, "UniqueNames is not set")},
		{name: "Find finds it by its mark", run: k.find, unless: unless(!finds, "the driver is no Finder")},
		{name: "Mark can be repeated", run: k.markAgain, unless: unless(!marks || o.Unmarked, "the driver is no Marker")},
	}
	names := make([]string, 0, len(k.f.Changes))
	for name := range k.f.Changes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		all = append(all, check{name: "change " + name, run: func(ctx context.Context) error { return k.change(ctx, name) }})
	}
	if updates && len(names) == 0 {
		all = append(all, check{name: "change", unless: "Fixture.Changes has none"})
	}
	return append(all,
		check{name: "Unmark removes the mark and nothing else", run: k.unmark, unless: unless(!unmarks || o.Unmarked, "the driver is no Unmarker")},
		check{name: "Delete", run: k.delete, needed: true},
		check{name: "what is gone can be deleted again", run: k.deleteAgain},
		check{name: "a second resource after the first", run: k.again},
	)
}

// found is what a check has found. It begins with the name of the method that it is about.
func found(format string, args ...any) error { return fmt.Errorf(format, args...) }
