package rendering

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
)

// Lookup is the function lookup of templates for the component of a context. It returns an empty map for what does not exist.
func Lookup(ctx context.Context) func(apiVersion, kind, namespace, name string) (map[string]any, error) {
	return func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		var err error
		var found map[string]any
		if name == "" {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(apiVersion)
			list.SetKind(kind + "List")
			err = component.LookupList(ctx, namespace, list)
			found = list.UnstructuredContent()
		} else {
			obj := &unstructured.Unstructured{}
			obj.SetAPIVersion(apiVersion)
			obj.SetKind(kind)
			err = component.Lookup(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
			found = obj.Object
		}
		if apierrors.IsNotFound(err) {
			return map[string]any{}, nil
		}
		return found, err
	}
}

// SortedKeys is sprig's keys, whose order is another one each time.
func SortedKeys(dicts ...map[string]any) []string {
	out := []string{}
	for _, d := range dicts {
		out = append(out, slices.Sorted(maps.Keys(d))...)
	}
	return out
}

// SortedValues is sprig's values, whose order is another one each time.
func SortedValues(dict map[string]any) []any {
	out := []any{}
	for _, key := range slices.Sorted(maps.Keys(dict)) {
		out = append(out, dict[key])
	}
	return out
}
