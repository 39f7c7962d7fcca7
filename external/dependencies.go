package external

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/loop"
)

type objectKey = types.NamespacedName

// dependencyKind is a kind that objects of kind T may need.
type dependencyKind[T client.Object] struct{ to client.Object }

// namedByEmpty asks a driver what an empty object depends on, to learn the kinds. A driver
// that cannot answer for an empty object names its kinds in [Options.DependencyKinds].
func (e *engine[T, C, O]) namedByEmpty() []dependencyKind[T] {
	empty, _ := reflect.TypeAssert[T](reflect.New(reflect.TypeFor[T]().Elem()))
	named, err := e.dependsOn(context.Background(), empty) //nolint:forbidigo // wiring happens before there is one
	if err != nil {
		return nil
	}
	kinds := make([]dependencyKind[T], 0, len(named))
	for _, n := range named {
		kinds = append(kinds, dependencyKind[T]{to: n.To})
	}
	return kinds
}

func unique[T client.Object](kinds []dependencyKind[T]) []dependencyKind[T] {
	var out []dependencyKind[T]
	for _, k := range kinds {
		if !slices.ContainsFunc(out, func(o dependencyKind[T]) bool { return o.is(k.to) }) {
			out = append(out, k)
		}
	}
	return out
}

// is tells whether to is of this kind.
func (k dependencyKind[T]) is(to client.Object) bool {
	if u, ok := to.(*unstructured.Unstructured); ok {
		o, ok := k.to.(*unstructured.Unstructured)
		return ok && o.GroupVersionKind() == u.GroupVersionKind()
	}
	return reflect.TypeOf(k.to) == reflect.TypeOf(to)
}

// dependsOn asks the driver what obj, a copy for the author, depends on.
func (e *engine[T, C, O]) dependsOn(ctx context.Context, obj T) ([]Dependency, error) {
	return pure(ctx, &e.left, subjectOf(obj), "DependsOn", func() ([]Dependency, error) {
		return slices.Clone(e.dependent.DependsOn(obj)), nil
	})
}

// names are the objects of this kind that obj needs. If the driver does not say, they are
// none: the object's own pass meets the same mistake, and tells it.
func (e *engine[T, C, O]) names(k dependencyKind[T], obj T) []objectKey {
	copied, _ := obj.DeepCopyObject().(T)
	named, err := e.dependsOn(context.Background(), copied) //nolint:forbidigo // the cache's index has none
	if err != nil {
		return nil
	}
	var keys []objectKey
	for _, n := range named {
		if k.is(n.To) && n.Name != "" {
			keys = append(keys, n.key(obj))
		}
	}
	return keys
}

func (d Dependency) key(of client.Object) objectKey {
	if d.Namespace == "" {
		return objectKey{Namespace: of.GetNamespace(), Name: d.Name}
	}
	return objectKey{Namespace: d.Namespace, Name: d.Name}
}

// unready lists the dependencies of an object that it must wait for. They are read from
// the cache alone.
func (e *engine[T, C, O]) unready(ctx context.Context, k client.Client, live client.Reader, obj T) ([]loop.Dep, error) {
	if e.dependent == nil {
		return nil, nil
	}
	named, err := e.dependsOn(ctx, obj)
	if err != nil {
		return nil, err
	}
	var waiting []loop.Dep
	for _, d := range named {
		why, err := e.lacking(ctx, k, live, obj, d)
		if err != nil {
			return nil, err
		}
		if why != "" {
			key := d.key(obj)
			waiting = append(waiting, loop.Dep{Kind: kindOf(k, d.To), Namespace: key.Namespace, Name: key.Name, Why: why})
		}
	}
	return waiting, nil
}

// lacking says what a dependency lacks, nothing if it is ready.
func (e *engine[T, C, O]) lacking(ctx context.Context, k client.Client, live client.Reader, obj T, d Dependency) (string, error) {
	if !slices.ContainsFunc(e.dependencies, func(kind dependencyKind[T]) bool { return kind.is(d.To) }) {
		return "", fmt.Errorf("%T depends on a %T, which is not watched; add it to Options.DependencyKinds", obj, d.To)
	}
	if d.Name == "" {
		return "is not named", nil
	}
	to, _ := d.To.DeepCopyObject().(client.Object)
	key := d.key(obj)
	err := k.Get(ctx, key, to)
	switch {
	case apierrors.IsNotFound(err):
		return "does not exist", nil
	case err != nil:
		return "", fmt.Errorf("read %s %s: %w", kindOf(k, d.To), key, err)
	case !to.GetDeletionTimestamp().IsZero():
		return "is being deleted", nil
	case !isReady(to):
		return "is not ready", nil
	}
	if believed, err := e.believed(ctx, live, to); err != nil || !believed {
		return unvouched, err
	}
	return "", nil
}

func kindOf(k client.Client, obj client.Object) string {
	if gvk, err := k.GroupVersionKindFor(obj); err == nil {
		return gvk.Kind
	}
	return reflect.TypeOf(obj).Elem().Name()
}

// isReady tells whether an object of any kind says that it is ready, and has seen its present
// spec. One of ours whose present spec cannot be applied stays ready for the one before: it
// works, which is what others need.
func isReady(obj client.Object) bool {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return false
	}
	generation := obj.GetGeneration()
	if g, found, err := unstructured.NestedInt64(fields, "status", "observedGeneration"); err == nil && found && g != generation {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(fields, "status", "conditions")
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if !ok || m["type"] != api.ConditionReady {
			continue
		}
		_, ours := obj.(api.ExternalObject)
		g, found, err := unstructured.NestedInt64(m, "observedGeneration")
		return m["status"] == "True" && (err != nil || !found || g == generation || ours && g < generation)
	}
	return false
}

// unvouched is what a dependency lacks whose Ready somebody else wrote. When its operator
// writes the same, no cache shows that anything changed, so it is looked at again.
const unvouched = "says that it is ready, which its operator did not write"

// believed tells whether a dependency of ours that says it is Ready was told so by its
// operator, and not by whoever can write status. Kinds of others are taken at their word.
func (e *engine[T, C, O]) believed(ctx context.Context, live client.Reader, to client.Object) (bool, error) {
	o, ours := to.(statusObject)
	if !ours {
		return true, nil
	}
	version := to.GetResourceVersion()
	if e.beliefs.holds(to.GetUID(), version) {
		return true, nil
	}
	c, err := e.vouched(ctx, live, o)
	if err != nil || c == nil || c.Status != metav1.ConditionTrue {
		return false, err
	}
	e.beliefs.hold(to.GetUID(), version)
	return true, nil
}

// readinessChanged tells which updates of a dependency can matter. One that was lost outside
// and made again took with it what depends on it there, though it may have been Ready all
// along.
func readinessChanged(before, after client.Object) bool {
	return isReady(before) != isReady(after) || before.GetUID() != after.GetUID() || incarnationOf(before) != incarnationOf(after) ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
}

// incarnationOf counts how often the thing behind an object was made; 0 if the object stands
// for nothing outside.
func incarnationOf(obj client.Object) int64 {
	o, ok := obj.(api.ExternalObject)
	if !ok || o.TrimtabExternal().External == nil {
		return 0
	}
	return o.TrimtabExternal().External.Incarnation
}
