package external

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external/internal/change"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/engine"
	"github.com/trimtab-dev/trimtab/loop"
)

// untyped is a driver as the engine has it, without type parameters. What the author's types
// guarantee, the engine keeps: it hands back nothing but what it got from here.
func untyped[T Object, C, O any](d Driver[T, C, O]) engine.Driver {
	u := engine.Driver{
		Type: typeOf(d), Kind: reflect.TypeFor[T]().Elem().Name(),
		New: func() engine.Object { return as[T](reflect.New(reflect.TypeFor[T]().Elem()).Interface()) },
		Observe: func(ctx context.Context, r engine.Request) (engine.Observation, error) {
			o, err := d.Observe(ctx, ObserveRequest[T, C]{Client: as[C](r.Client), Object: as[T](r.Object), ID: r.ID, Incarnation: r.Incarnation, Dependencies: r.Dependencies})
			return o.inner(), err
		},
		Compare: func(obj engine.Object, have any) change.List {
			return d.Compare(CompareRequest[T, O]{Object: as[T](obj), Have: as[O](have)}).list()
		},
		Create: func(ctx context.Context, r engine.Request) (engine.Response, error) {
			a, err := d.Create(ctx, CreateRequest[T, C]{
				Client: as[C](r.Client), Object: as[T](r.Object), ID: r.ID, Incarnation: r.Incarnation, Dependencies: r.Dependencies, Mark: r.Mark, Passwords: r.Passwords, Token: r.Key,
			})
			return engine.Response{ID: a.ID, Observed: inner(a.Observed), Details: a.Details, Operation: engine.Operation(a.Operation)}, err
		},
		Delete: func(ctx context.Context, r engine.Request) (engine.Response, error) {
			a, err := d.Delete(ctx, DeleteRequest[T, C]{Client: as[C](r.Client), Object: as[T](r.Object), ID: r.ID, Incarnation: r.Incarnation, Dependencies: r.Dependencies})
			return engine.Response{Gone: a.Gone, Operation: engine.Operation(a.Operation)}, err
		},
		Errors: engine.Errors{Declared: declared},
	}
	addChanges(&u, d)
	addOperations(&u, d)
	addPure[T, O](&u, d)
	return u
}

// typeOf returns the type that messages about a mistake in the driver name.
func typeOf(d any) string {
	if named, ok := d.(engine.Named); ok {
		return named.DriverType()
	}
	return fmt.Sprintf("%T", d)
}

// addChanges adds the optional methods that call the external API.
func addChanges[T Object, C, O any](u *engine.Driver, d Driver[T, C, O]) {
	if updater, ok := any(d).(Updater[T, C, O]); ok {
		u.Update = func(ctx context.Context, r engine.Request) (engine.Response, error) {
			a, err := updater.Update(ctx, UpdateRequest[T, C, O]{
				Client: as[C](r.Client), Object: as[T](r.Object), ID: r.ID, Incarnation: r.Incarnation, Dependencies: r.Dependencies,
				Have: as[O](r.Have), Changes: changesOf(r.Changes), Passwords: r.Passwords,
			})
			return engine.Response{ID: a.ID, Observed: inner(a.Observed), Operation: engine.Operation(a.Operation)}, err
		}
	}
	if marker, ok := any(d).(Marker[T, C]); ok {
		u.Mark = func(ctx context.Context, r engine.Request) error {
			_, err := marker.Mark(ctx, MarkRequest[T, C]{
				Client: as[C](r.Client), Object: as[T](r.Object), ID: r.ID, Incarnation: r.Incarnation, Dependencies: r.Dependencies, Mark: r.Mark,
			})
			return err
		}
	}
	if finder, ok := any(d).(Finder[T, C]); ok {
		u.Find = func(ctx context.Context, r engine.Request) ([]engine.Found, error) {
			a, err := finder.Find(ctx, FindRequest[T, C]{Client: as[C](r.Client), Object: as[T](r.Object), Incarnation: r.Incarnation, Dependencies: r.Dependencies, Mark: r.Mark})
			out := make([]engine.Found, len(a.Found))
			for i, f := range a.Found {
				out[i] = engine.Found{ID: f.ID, Mark: f.Mark}
			}
			return out, err
		}
	}
	if unmarker, ok := any(d).(Unmarker[T, C]); ok {
		u.Unmark = func(ctx context.Context, r engine.Request) error {
			_, err := unmarker.Unmark(ctx, UnmarkRequest[T, C]{Client: as[C](r.Client), Object: as[T](r.Object), ID: r.ID, Incarnation: r.Incarnation, Dependencies: r.Dependencies})
			return err
		}
	}
}

// addPure adds the optional methods that call nobody.
func addPure[T Object, O any](u *engine.Driver, d any) {
	if namer, ok := d.(Namer[T]); ok {
		u.ExternalName = func(obj engine.Object) (string, error) { return namer.ExternalName(as[T](obj)) }
	}
	if reflector, ok := d.(Reflector[T, O]); ok {
		u.Reflect = func(obj engine.Object, have any) {
			reflector.Reflect(ReflectRequest[T, O]{Object: as[T](obj), Have: as[O](have)})
		}
	}
	if initializer, ok := d.(LateInitializer[T, O]); ok {
		u.LateInit = func(obj engine.Object, have any) {
			initializer.LateInit(LateInitRequest[T, O]{Object: as[T](obj), Have: as[O](have)})
		}
	}
	if finisher, ok := d.(Finisher[T, O]); ok {
		u.Finish = func(ctx context.Context, cluster client.Client, obj engine.Object, have any) error {
			_, err := finisher.Finish(ctx, FinishRequest[T, O]{Cluster: cluster, Object: as[T](obj), Have: as[O](have)})
			return err
		}
	}
	if dependent, ok := d.(Dependent[T]); ok {
		u.DependsOn = func(obj engine.Object) []engine.Dependency {
			named := dependent.DependsOn(as[T](obj))
			out := make([]engine.Dependency, len(named))
			for i, n := range named {
				out[i] = engine.Dependency(n)
			}
			return out
		}
	}
	if connectable, ok := d.(Connectable[T]); ok {
		u.Connection = func(obj engine.Object) engine.Connection {
			return engine.Connection(connectable.Connection(as[T](obj)))
		}
	}
	if classifier, ok := d.(Classifier); ok {
		u.Errors.Classify = func(err error) decide.Class { return decide.Class(classifier.Classify(err)) }
	}
}

// declared returns what the maker of an error said of it.
func declared(err error) (class decide.Class, after time.Duration, said bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return decide.Class(e.Class), e.After, true
	}
	return decide.ClassUnknown, 0, false
}

// as is x, whose type V was lost on the way; nil is the zero value.
func as[V any](x any) V {
	v, _ := x.(V)
	return v
}

func inner[O any](o *Observation[O]) *engine.Observation {
	if o == nil {
		return nil
	}
	i := o.inner()
	return &i
}

// untypedRun implements [engine.Run].
type untypedRun[T Object] struct{ *loop.Run[T] }

// Object implements [engine.Run].
func (r untypedRun[T]) Object() engine.Object { return r.Obj }

// SetObject implements [engine.Run].
func (r untypedRun[T]) SetObject(obj engine.Object) { r.Obj = as[T](obj) }

// Sharing implements [engine.Run].
func (r untypedRun[T]) Sharing(ctx context.Context, key string) ([]engine.Object, error) {
	found, err := r.Run.Sharing(ctx, key)
	out := make([]engine.Object, len(found))
	for i, obj := range found {
		out[i] = obj
	}
	return out, err
}

// untyped are the options as the engine has them.
func (o Options[T, C]) untyped() engine.Options {
	u := engine.Options{
		DriftInterval: o.DriftInterval, CallDeadline: o.CallDeadline, CreateGrace: o.CreateGrace, OperationDeadline: o.OperationDeadline,
		UniqueNames: o.UniqueNames, MarkLater: o.MarkLater, Unmarked: o.Unmarked,
		AssignedIDs: o.AssignedIDs, Tokens: o.Tokens, LastApplied: o.LastApplied,
		Limits: engine.Limits(o.Limits), DependencyKinds: o.DependencyKinds,
	}
	if o.Connect != nil {
		u.Connect = func(ctx context.Context) (any, error) { return o.Connect(ctx) }
	}
	if o.Endpoint != nil {
		u.Endpoint = func(ctx context.Context, client any) (string, error) { return o.Endpoint(ctx, as[C](client)) }
	}
	if o.Connector != nil {
		u.Connector = untypedConnector(o.Connector)
	}
	return u
}
