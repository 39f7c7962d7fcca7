package sandbox

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// World is what users and others act on.
type World struct {
	// Client is an administrator's, without a cache.
	Client client.Client
	// External is nil if there is no external API.
	External *External
}

// Read returns an object as it is.
func (w *World) Read(ctx context.Context, obj client.Object) (*unstructured.Unstructured, error) {
	gvk, err := w.Client.GroupVersionKindFor(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, w.Client.Get(ctx, client.ObjectKeyFromObject(InDefault(w.Client, obj)), u)
}

// InDefault is a copy of an object of a step, which is used many times, in the namespace "default" if
// it has to be in one and names none.
func InDefault(c client.Client, obj client.Object) client.Object {
	fresh, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		panic(fmt.Sprintf("the deep copy of a %T is no object", obj))
	}
	if namespaced, err := c.IsObjectNamespaced(fresh); err == nil && namespaced && fresh.GetNamespace() == "" {
		fresh.SetNamespace(metav1.NamespaceDefault)
	}
	return fresh
}
