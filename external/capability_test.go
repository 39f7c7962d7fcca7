package external_test

import (
	"context"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// Drivers whose authors meant to write an optional method.
type (
	oldUpdate  struct{ boxes }
	misspelt   struct{ incapable }
	byPointer  struct{ incapable }
	namedTwice struct{ incapable }
	bothWrong  struct{ incapable }
	oneLetter  struct{ incapable }
	resizes    struct{ incapable }
)

// incapable is a driver that can do no more than it must.
type incapable struct{}

func (incapable) Observe(context.Context, external.ObserveRequest[*thing.Thing, shelf]) (external.Observation[box], error) {
	return external.Missing[box](), nil
}
func (incapable) Compare(external.CompareRequest[*thing.Thing, box]) external.Changes { return nil }
func (incapable) Create(context.Context, external.CreateRequest[*thing.Thing, shelf]) (external.CreateResponse[box], error) {
	return external.CreateResponse[box]{}, nil
}

func (incapable) Delete(context.Context, external.DeleteRequest[*thing.Thing, shelf]) (external.DeleteResponse, error) {
	return external.DeleteResponse{}, nil
}

func (oldUpdate) Update(context.Context, external.UpdateRequest[*thing.Thing, shelf, *box]) error {
	return nil
}

func (misspelt) UnMark(context.Context, external.UnmarkRequest[*thing.Thing, shelf]) (external.UnmarkResponse, error) {
	return external.UnmarkResponse{}, nil
}

func (*byPointer) Reflect(external.ReflectRequest[*thing.Thing, box]) {}

func (namedTwice) ExternalName(*thing.Thing) string { return "" }

func (*bothWrong) Update(context.Context, external.UpdateRequest[*thing.Thing, shelf, box]) error {
	return nil
}

func (oneLetter) Updat(context.Context, external.UpdateRequest[*thing.Thing, shelf, box]) (external.UpdateResponse[box], error) {
	return external.UpdateResponse[box]{}, nil
}

func (resizes) Resize(context.Context, external.UpdateRequest[*thing.Thing, shelf, box]) error {
	return nil
}

// TestCapabilities: an optional method that nobody would call is reported before anything runs. An Update
// of another signature would make each change of a spec a deletion and a new create.
func TestCapabilities(t *testing.T) {
	for _, test := range []struct {
		driver external.Driver[*thing.Thing, shelf, box]
		want   []string
	}{
		{boxes{}, nil},
		{incapable{}, nil},
		{oldUpdate{}, []string{
			"Update(context.Context, external.UpdateRequest[*thing.Thing, external_test.shelf, *external_test.box]) error",
			"that of external.Updater[*thing.Thing, external_test.shelf, external_test.box] is",
			"Update(context.Context, external.UpdateRequest[*thing.Thing, external_test.shelf, external_test.box]) (external.UpdateResponse[external_test.box], error)",
		}},
		{misspelt{}, []string{
			"UnMark", "Unmark(context.Context, external.UnmarkRequest[*thing.Thing, external_test.shelf]) (external.UnmarkResponse, error)",
		}},
		{byPointer{}, []string{"&byPointer{...}"}},
		{&byPointer{}, nil},
		{bothWrong{}, []string{
			"Update(context.Context, external.UpdateRequest[*thing.Thing, external_test.shelf, external_test.box]) error\nwhich is not called",
		}},
		{oneLetter{}, []string{"external_test.oneLetter has the method Updat, which is not called: that of external.Updater"}},
		{resizes{}, []string{
			"has the method Resize with a parameter of type external.UpdateRequest[*thing.Thing, external_test.shelf, external_test.box], which is not called, " +
				"because no interface of package external has it: rename it, or unexport it if you call it yourself",
		}},
		{namedTwice{}, []string{"ExternalName(*thing.Thing) string", "ExternalName(*thing.Thing) (string, error)"}},
	} {
		c := external.New(test.driver, external.Options[*thing.Thing, shelf]{
			Connect: func(context.Context) (shelf, error) { return shelf{}, nil },
		})
		_, err := c.Needs(scheme(t))
		if (err == nil) != (len(test.want) == 0) {
			t.Errorf("%T: %v", test.driver, err)
			continue
		}
		for _, part := range test.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%T: %v; want %q in it", test.driver, err, part)
			}
		}
	}
}
