package verify

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/internal/engine"
	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/loop"
)

// Options configure the controller of one kind. The zero value suits most.
type Options[T external.Object] struct {
	// RequeueAfter is when to verify again while the resource is in progress or being deleted. Zero means 1 s, growing to
	// 30 s.
	RequeueAfter time.Duration
	// RequeueAfterSuccess is how often a resource that is Ready is verified. Zero means 10 minutes. A negative value
	// means never: only after events.
	RequeueAfterSuccess time.Duration
	// RequeueAfterFailure is when to try again after a failure. Zero means 1 s, growing to 10 minutes. A negative value
	// means never: a failed object waits until it is changed. Deletions are always tried again.
	RequeueAfterFailure time.Duration

	// OnSuccess is called when the resource is Ready, before the object is Succeeded; see [external.Finisher]. Nil means that
	// there is nothing to do.
	OnSuccess func(ctx context.Context, r SuccessRequest[T]) error

	// Marked means that the API can store ownership marks: Create stores ResourceSpec.Mark, and Verify returns it in
	// VerifyResponse.Mark. Then nothing but the mark is needed to know whose a resource is.
	Marked bool

	// The following are as in [external.Options].
	CallDeadline, CreateGrace time.Duration
	UniqueNames               bool
	Limits                    external.Limits
	DependencyKinds           []client.Object
	// Loop is, too. RequeueAfterFailure, if it is not zero, replaces Loop.Retry.
	Loop loop.Options[T]
}

// SuccessRequest asks to do what follows from a resource that is Ready.
type SuccessRequest[T external.Object] struct {
	// Cluster reads from the cache of the operator and writes to the API server.
	Cluster client.Client
	// Instance is a copy of the custom resource. It must not be written.
	Instance T
}

// New makes the controller of one kind of external resource. It returns an error if something is missing or cannot be used. A
// kind that is not registered is an error of SetupWithManager.
//
// A ResourceManager may also be an [external.Namer] and an [external.Classifier].
func New[T external.Object](m ResourceManager[T], d DefinitionManager[T], o Options[T]) (*loop.Controller[T], error) {
	kind := reflect.TypeFor[T]()
	switch {
	case kind.Kind() != reflect.Pointer || kind.Elem().Kind() != reflect.Struct:
		return nil, fmt.Errorf("verify: New needs the kind of the objects, a pointer to a struct, instead of %s", kind)
	case isNil(m):
		return nil, errors.New("verify: New needs a ResourceManager; pass the value that implements Create, Update, Verify and Delete")
	case isNil(d):
		return nil, fmt.Errorf("verify: New needs a DefinitionManager; pass verify.NoDependencies[%s]{} if there are no dependencies", kind)
	case o.RequeueAfter < 0:
		return nil, errors.New("verify: Options.RequeueAfter is negative; a resource in progress must be verified again")
	}
	if err := checkDefinition(d); err != nil {
		return nil, err
	}
	if err := engine.Limits(o.Limits).Check(); err != nil {
		return nil, fmt.Errorf("verify: Options.Limits: %w", err)
	}
	return o.controller(&driver[T]{manager: m, definition: d, options: o}), nil
}

// checkDefinition asks for the dependencies of an empty object. If there is no answer, it is asked again by package external.
func checkDefinition[T external.Object](d DefinitionManager[T]) error {
	empty, _ := reflect.TypeAssert[T](reflect.New(reflect.TypeFor[T]().Elem()))
	all, err := guard.Call("the DefinitionManager", "Dependencies", func() (DependencyDefinitions, error) { return d.Dependencies(empty), nil })
	if err != nil {
		return nil //nolint:nilerr // Options.DependencyKinds may name the kinds
	}
	for _, one := range all.list() {
		if one.To == nil {
			return fmt.Errorf("verify: %T returns a Dependency without To; set it to an empty object of the kind", d)
		}
	}
	return nil
}

// isNil reports whether there is no value in an interface, not even that of a nil pointer.
func isNil(x any) bool {
	v := reflect.ValueOf(x)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// controller chooses the driver that can do what is asked for, and nothing else.
func (o Options[T]) controller(d *driver[T]) *loop.Controller[T] {
	_, independent := d.definition.(NoDependencies[T])
	switch options := o.external(); {
	case o.OnSuccess == nil && independent:
		return external.New(d, options)
	case o.OnSuccess == nil:
		return external.New(&dependent[T]{d}, options)
	case independent:
		return external.New(&finishing[T]{d}, options)
	default:
		return external.New(&finishingDependent[T]{dependent[T]{d}}, options)
	}
}

// external are the options as package external has them.
func (o Options[T]) external() external.Options[T, none] {
	e := external.Options[T, none]{
		Connect:       func(context.Context) (none, error) { return none{}, nil },
		DriftInterval: o.RequeueAfterSuccess, CallDeadline: o.CallDeadline, CreateGrace: o.CreateGrace, UniqueNames: o.UniqueNames,
		Unmarked: !o.Marked, LastApplied: true, Limits: o.Limits, DependencyKinds: o.DependencyKinds, Loop: o.Loop,
	}
	switch after := o.RequeueAfterFailure; {
	case after > 0:
		e.Loop.Retry = loop.Retry{Initial: after, Multiplier: 1, Max: after}
	case after < 0:
		e.Loop.Retry = loop.Retry{Attempts: -1}
	}
	return e
}
