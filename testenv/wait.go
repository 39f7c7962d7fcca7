package testenv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Wait watches the object with obj's kind, namespace and name until ok returns true for one of its
// states, and returns that state. The object need not exist yet. why completes the sentence
// "waited for ...", for example "the stream to become Ready".
//
// An object of a namespaced kind must have a namespace.
//
// After two minutes, or shortly before the time limit of go test, the test fails and shows the last
// state of the object.
func Wait[T client.Object](t testing.TB, c client.WithWatch, obj T, why string, ok func(T) bool) T {
	t.Helper()
	var seen T
	return follow(t, c, obj, why, func(now T, exists bool) (T, bool) {
		if exists {
			seen = now
		}
		return seen, exists && ok(now)
	})
}

// Gone watches the object with obj's kind, namespace and name until it does not exist. An object whose
// kind the server does not serve, for instance because its definition was deleted, does not exist. Gone
// fails like [Wait].
func Gone[T client.Object](t testing.TB, c client.WithWatch, obj T, why string) {
	t.Helper()
	var seen T
	follow(t, c, obj, why, func(now T, exists bool) (T, bool) {
		if exists {
			seen = now
		}
		return seen, !exists
	})
}

// follow calls look with each state of an object until look is satisfied, and returns its last
// result.
func follow[T client.Object](t testing.TB, c client.WithWatch, obj T, why string, look func(now T, exists bool) (T, bool)) T {
	t.Helper()
	if namespaced, err := c.IsObjectNamespaced(obj); err == nil && namespaced && obj.GetNamespace() == "" {
		t.Fatalf("waiting for %s: %T %s has no namespace, so those of all namespaces would be meant; set it", why, obj, obj.GetName())
	}
	ctx, cancel := within(t)
	defer cancel()
	began := time.Now()
	var seen T
	existed := false
	for s, err := range states(ctx, c, obj) {
		if unserved(err) {
			if _, done := look(s.obj, false); done {
				return seen
			}
		}
		if err != nil && ctx.Err() == nil {
			t.Fatalf("waiting for %s: %v", why, err)
		}
		if err != nil {
			break
		}
		var done bool
		existed = existed || s.exists
		if seen, done = look(s.obj, s.exists); done {
			return seen
		}
	}
	waited := time.Since(began).Round(time.Millisecond)
	t.Fatalf("waited %s for %s; %s", waited, why, describe(c, obj, seen, existed))
	return seen
}

// unserved reports whether err says that the server does not serve the kind of an object.
func unserved(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// describe describes the last state of the object.
func describe(c client.Client, asked, seen client.Object, existed bool) string {
	name := fmt.Sprintf("%T", asked)
	if gvk, err := c.GroupVersionKindFor(asked); err == nil {
		name = gvk.Kind
	}
	name += " " + client.ObjectKeyFromObject(asked).String()
	if !existed {
		return name + " never existed"
	}
	last, ok := seen.DeepCopyObject().(client.Object)
	if !ok {
		return name + " cannot be shown"
	}
	last.SetManagedFields(nil)
	text, err := yaml.Marshal(last)
	if err != nil {
		return fmt.Sprintf("%s cannot be shown: %v", name, err)
	}
	return fmt.Sprintf("%s was last seen as\n%s", name, text)
}

// state is the state of an object at one moment.
type state[T client.Object] struct {
	obj    T
	exists bool
}

// states yields the present state of an object and then each new one. An error ends the sequence.
func states[T client.Object](ctx context.Context, c client.WithWatch, obj T) iter.Seq2[state[T], error] {
	return func(yield func(state[T], error) bool) {
		for {
			again, err := watchOnce(ctx, c, obj, func(s state[T]) bool { return yield(s, nil) })
			if err != nil {
				yield(state[T]{}, err)
			}
			if !again {
				return
			}
		}
	}
}

// watchOnce reads and then watches an object. It returns true if the server ended the watch, as it
// does now and then, and the caller should watch again.
func watchOnce[T client.Object](ctx context.Context, c client.WithWatch, obj T, see func(state[T]) bool) (again bool, err error) {
	list, err := listOf(c, obj)
	if err != nil {
		return false, err
	}
	only := &client.ListOptions{
		Namespace: obj.GetNamespace(),
		Raw:       &metav1.ListOptions{FieldSelector: "metadata.name=" + obj.GetName()},
	}
	if err := c.List(ctx, list, only); err != nil {
		return false, err
	}
	now, err := first[T](list)
	if err != nil || !see(now) {
		return false, err
	}
	only.Raw.ResourceVersion = list.GetResourceVersion()
	w, err := c.Watch(ctx, list, only)
	if err != nil {
		return false, err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		s, err := stateOf[T](event)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return true, nil
		}
		if err != nil || !see(s) {
			return false, err
		}
	}
	return ctx.Err() == nil, ctx.Err()
}

func stateOf[T client.Object](event watch.Event) (state[T], error) {
	if event.Type == watch.Error {
		return state[T]{}, apierrors.FromObject(event.Object)
	}
	obj, ok := event.Object.(T)
	if !ok {
		return state[T]{}, fmt.Errorf("the server sent a %T, not a %T", event.Object, obj)
	}
	return state[T]{obj: obj, exists: event.Type != watch.Deleted}, nil
}

// first returns the only object of a list.
func first[T client.Object](list client.ObjectList) (state[T], error) {
	items, err := meta.ExtractList(list)
	if err != nil || len(items) == 0 {
		return state[T]{}, err
	}
	obj, ok := items[0].(T)
	if !ok {
		return state[T]{}, fmt.Errorf("the server listed a %T, not a %T", items[0], obj)
	}
	return state[T]{obj: obj, exists: true}, nil
}

// listOf returns an empty list of obj's kind, typed if obj is.
func listOf(c client.Client, obj client.Object) (client.ObjectList, error) {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	switch obj.(type) {
	case runtime.Unstructured:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	case *metav1.PartialObjectMetadata:
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	}
	made, err := c.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	list, ok := made.(client.ObjectList)
	if !ok {
		return nil, errors.New(gvk.String() + " is not a list")
	}
	return list, nil
}

// pollEvery is the interval at which states that cannot be watched are polled.
const pollEvery = 20 * time.Millisecond

// poll calls ask until it returns true. It is for states of the server that cannot be watched, such as
// a permission that has taken effect.
func poll(t testing.TB, why string, ask func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := within(t)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		yes, err := ask(ctx)
		if yes {
			return
		}
		if err != nil && ctx.Err() == nil {
			t.Fatalf("waiting for %s: %v", why, err)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited for %s until %v", why, ctx.Err())
		case <-tick.C:
		}
	}
}
