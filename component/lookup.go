package component

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trimtab-dev/trimtab/component/internal/engine"
	"github.com/trimtab-dev/trimtab/component/internal/projection"
	"github.com/trimtab-dev/trimtab/loop"
)

var errNoLookup = errors.New("component: the context is not that of a renderer or a generator")

// looksOf returns what reads for the renderer whose context this is.
func looksOf(ctx context.Context) (*passing, engine.Looks, error) {
	p, err := passingOf(ctx)
	if err == nil && p.looks == nil {
		err = errNoLookup
	}
	if err != nil {
		return nil, nil, err
	}
	return p, p.looks, nil
}

// Lookup reads the object with this key into obj, from the cluster of the dependents and as the user who applies
// them. It works in the context of a [Renderer] or [Generator]. Anywhere else it returns an error. If the object
// does not exist, the error is that of the API server (NotFound).
//
// Lookups are tracked: when the object is created, changed or deleted, the renderer is called again. This takes
// one watch of metadata for each object, so look up a few objects rather than all of a kind. The user needs the
// permissions get, list and watch for the object. For the operator itself, add them to Needs of [Options.Loop].
func Lookup(ctx context.Context, key client.ObjectKey, obj client.Object) error {
	p, looks, err := looksOf(ctx)
	if err != nil {
		return err
	}
	kind, err := apiutil.GVKForObject(obj, p.scheme)
	switch {
	case err != nil:
		return fmt.Errorf("look up %s: %w", key, err)
	case key.Name == "":
		return fmt.Errorf("look up an object of kind %s: it has no name; LookupList returns all", kind.Kind)
	}
	live, err := looks.Object(ctx, kind, key)
	if err != nil {
		return err
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		live.DeepCopyInto(u)
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, obj); err != nil {
		return fmt.Errorf("look up %s %s: %w", kind.Kind, key, err)
	}
	return nil
}

// LookupList reads all objects of a kind in a namespace into list. An empty namespace means all namespaces. It is
// [Lookup] in everything else. It takes one watch of metadata of all these objects, and one read of them in each pass
// after one of them was written.
func LookupList(ctx context.Context, namespace string, list client.ObjectList) error {
	p, looks, err := looksOf(ctx)
	if err != nil {
		return err
	}
	kind, err := apiutil.GVKForObject(list, p.scheme)
	if err != nil {
		return fmt.Errorf("look up a %T: %w", list, err)
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	live, err := looks.Object(ctx, kind, types.NamespacedName{Namespace: namespace})
	if err != nil {
		return err
	}
	if u, ok := list.(*unstructured.UnstructuredList); ok {
		u.SetUnstructuredContent(live.DeepCopy().Object)
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, list); err != nil {
		return fmt.Errorf("look up all objects of kind %s: %w", kind.Kind, err)
	}
	return nil
}

// Capabilities are what the cluster of the dependents can do.
type Capabilities struct {
	// Version is that of Kubernetes, such as "v1.37.1".
	Version string
	// APIs are the versions of the APIs that are served, such as "apps/v1", and their kinds, such as
	// "apps/v1/Deployment", in order. An API whose own server does not answer counts as served.
	APIs []string
}

// CapabilitiesFromContext returns what the cluster of the dependents can do. It works in the context of a [Renderer]
// or [Generator]. Anywhere else it returns an error.
//
// The renderer is called again when the APIs change. This takes a watch of the metadata of CustomResourceDefinitions
// and one of APIServices. If the user who applies the dependents may not list and watch them, the API server is asked
// every 10 minutes instead. A new version of Kubernetes that changes neither is noticed when the operator is restarted.
func CapabilitiesFromContext(ctx context.Context) (Capabilities, error) {
	_, looks, err := looksOf(ctx)
	if err != nil {
		return Capabilities{}, err
	}
	served, err := looks.APIs(ctx)
	return Capabilities{Version: served.Version, APIs: served.APIs}, err
}

// CapabilityNeeds returns the permissions that [CapabilitiesFromContext] needs to notice changes. A [Renderer] or
// [Generator] that has a method Needs() []loop.Need has its permissions granted to the operator.
func CapabilityNeeds() []loop.Need {
	var needs []loop.Need
	for _, kind := range projection.APIs() {
		needs = append(needs, loop.Need{GroupVersionKind: kind, Verbs: []string{"list", "watch"}, ClusterWide: true})
	}
	return needs
}
