package loop

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/cached"
)

// statusOf returns obj's status as the API sees it; nil if it is empty.
func statusOf(obj client.Object) (map[string]any, error) {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert status: %w", err)
	}
	fields, _ := u["status"].(map[string]any)
	for key, value := range fields {
		fields[key] = valid(value)
	}
	return fields, nil
}

// valid is a part of a status as the API server keeps it: bytes that are no text would never
// be as written, and be written at every pass.
func valid(value any) any {
	switch v := value.(type) {
	case string:
		return strings.ToValidUTF8(v, "\uFFFD")
	case []any:
		for i := range v {
			v[i] = valid(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = valid(v[key])
		}
	}
	return value
}

// withStatusOf is obj with the status of another version of it.
func (c *Controller[T]) withStatusOf(other, obj T) (T, error) {
	out := cached.New[T]()
	fields, err := statusOf(other)
	if err != nil {
		return out, err
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return out, fmt.Errorf("convert %s: %w", c.gvk.Kind, err)
	}
	if delete(u, "status"); fields != nil {
		u["status"] = fields
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u, out); err != nil {
		return out, fmt.Errorf("convert %s: %w", c.gvk.Kind, err)
	}
	return out, nil
}

// statusPatch is the merge patch from one status to another, empty if they are equal. With a
// version it is locked to that.
func statusPatch(have, want map[string]any, version string) ([]byte, error) {
	from, to := &unstructured.Unstructured{Object: map[string]any{"status": have}}, &unstructured.Unstructured{Object: map[string]any{"status": want}}
	if version == "" {
		return client.MergeFrom(from).Data(to)
	}
	from.SetResourceVersion(version)
	to.SetResourceVersion(version)
	return client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}).Data(to)
}

func conditionsEqual(a, b *api.Status) bool { return conditions.Equal(a.Conditions, b.Conditions) }

func emptySet() conditions.Set { return conditions.Set{} }

func schemaResource(gvk schema.GroupVersionKind) schema.GroupResource {
	return schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}
}

// wrap says what was being done, and keeps the kind of API error visible.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
