package component_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// vendor is an external API: things by name, with a log of the calls.
type vendor struct {
	mu     sync.Mutex
	things map[string]sold
	log    []string
	// password returns the password that a thing is to have. Nil means that it has none.
	password func(*thing.Thing) string
	// called is called before a call, and answered after it has taken effect. Their errors are the answer.
	called, answered func(call string) error
}

// sold is a thing as the vendor keeps it.
type sold struct {
	size     int
	password string
	tags     map[string]string
}

var errNoSuchThing = errors.New("no such thing")

// call makes a call under the lock.
func (v *vendor) call(call string, f func() error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.log = append(v.log, call)
	if v.called != nil {
		if err := v.called(call); err != nil {
			return err
		}
	}
	err := f()
	if v.answered != nil && err == nil {
		err = v.answered(call)
	}
	return err
}

// with looks at the vendor, or changes it behind the operator's back.
func (v *vendor) with(f func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f()
}

// names are those of the things that there are.
func (v *vendor) names() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Sorted(maps.Keys(v.things))
}

// calls are those so far whose log line begins so.
func (v *vendor) calls(prefix ...string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(v.log), func(line string) bool {
		return !slices.ContainsFunc(prefix, func(p string) bool { return strings.HasPrefix(line, p) })
	})
}

// things is the driver of the vendor's things.
type things struct{}

type thingOptions = external.Options[*thing.Thing, *vendor]

// sells are the options of the driver.
func (v *vendor) sells() thingOptions {
	return thingOptions{Connect: func(context.Context) (*vendor, error) { return v, nil }}
}

func (things) ExternalName(obj *thing.Thing) (string, error) {
	if obj.Spec.Name != "" {
		return obj.Spec.Name, nil
	}
	return obj.Namespace + "." + obj.Name, nil
}

func (things) Observe(_ context.Context, r external.ObserveRequest[*thing.Thing, *vendor]) (o external.Observation[sold], err error) {
	err = r.Client.call("observe "+r.ID, func() error {
		found, ok := r.Client.things[r.ID]
		if o = external.Missing[sold](); ok {
			o = external.Available(found, external.MarkOf(found.tags))
		}
		return nil
	})
	return o, err
}

func (things) Compare(r external.CompareRequest[*thing.Thing, sold]) external.Changes {
	return external.Diff(external.Field("spec.size", r.Object.Spec.Size, r.Have.size))
}

func (things) Create(_ context.Context, r external.CreateRequest[*thing.Thing, *vendor]) (external.CreateResponse[sold], error) {
	return external.CreateResponse[sold]{}, r.Client.call("create "+r.ID, func() error {
		if _, exists := r.Client.things[r.ID]; exists {
			return errors.New("exists")
		}
		s := sold{size: r.Object.Spec.Size, tags: r.Mark.On(nil)}
		if r.Client.password != nil {
			s.password = r.Client.password(r.Object)
		}
		r.Client.things[r.ID] = s
		return nil
	})
}

func (things) Update(_ context.Context, r external.UpdateRequest[*thing.Thing, *vendor, sold]) (external.UpdateResponse[sold], error) {
	return external.UpdateResponse[sold]{}, r.Client.call("update "+r.ID, func() error {
		found, ok := r.Client.things[r.ID]
		if !ok {
			return errNoSuchThing
		}
		found.size = r.Object.Spec.Size
		r.Client.things[r.ID] = found
		return nil
	})
}

func (things) Delete(_ context.Context, r external.DeleteRequest[*thing.Thing, *vendor]) (external.DeleteResponse, error) {
	return external.DeleteResponse{}, r.Client.call("delete "+r.ID, func() error {
		delete(r.Client.things, r.ID)
		return nil
	})
}

func (things) Reflect(r external.ReflectRequest[*thing.Thing, sold]) {
	r.Object.Status.Host = r.Object.Name + ".vendor.example.org"
}
