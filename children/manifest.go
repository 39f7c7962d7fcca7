package children

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

// owning is the owner of the children of a pass.
type owning struct {
	types.NamespacedName
	uid types.UID
}

// manifest returns a child as it is to be applied, and nil if it is not to exist.
func (w *wiring[T]) manifest(c Child[T], obj T) (*unstructured.Unstructured, error) {
	var want client.Object
	exists := true
	err := guard.Aside("child "+c.name, "its function", func() {
		if exists = c.when == nil || c.when(obj); exists {
			want = c.desired(obj)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case !exists:
		return nil, nil
	case want == nil:
		return nil, fmt.Errorf("child %q: its function returned nil; use children.Child.When for a child that need not exist", c.name)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return nil, fmt.Errorf("child %q: %w", c.name, err)
	}
	withoutEmpty(reflect.ValueOf(want), content)
	m := &unstructured.Unstructured{Object: withoutNull(content)}
	m.SetGroupVersionKind(w.kind(c).gvk)
	delete(m.Object, "status")
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation", "selfLink", "deletionTimestamp"} {
		unstructured.RemoveNestedField(m.Object, "metadata", field)
	}
	owner := owning{client.ObjectKeyFromObject(obj), obj.GetUID()}
	if err := w.place(m, c, owner); err != nil {
		return nil, fmt.Errorf("child %q: %w", c.name, err)
	}
	return m, w.mark(m, c, owner)
}

// place gives a child its name and namespace.
func (w *wiring[T]) place(m *unstructured.Unstructured, c Child[T], owner owning) error {
	if m.GetName() == "" {
		m.SetName(owner.Name)
	}
	k := w.kind(c)
	switch {
	case !k.namespaced && m.GetNamespace() != "":
		return fmt.Errorf("%s objects have no namespace; leave it out", k.gvk.Kind)
	case k.namespaced && m.GetNamespace() == "" && owner.Namespace == "":
		return errors.New("its owner has no namespace, so its function must set one")
	case k.namespaced && m.GetNamespace() == "":
		m.SetNamespace(owner.Namespace)
	case k.namespaced && owner.Namespace != "" && m.GetNamespace() != owner.Namespace && !c.elsewhere:
		return fmt.Errorf("it is in namespace %s and its owner in %s, where garbage collection does not reach it: add .Elsewhere() to the child",
			m.GetNamespace(), owner.Namespace)
	}
	return nil
}

// mark puts on a child what it is found by.
func (w *wiring[T]) mark(m *unstructured.Unstructured, c Child[T], owner owning) error {
	m.SetLabels(with(m.GetLabels(), map[string]string{w.names.owner(): string(owner.uid), w.names.child(): c.name}))
	if c.unreachable(w.settings) {
		m.SetAnnotations(with(m.GetAnnotations(), map[string]string{w.names.owner(): reference(owner.NamespacedName, client.ObjectKeyFromObject(m))}))
	} else {
		if metav1.GetControllerOf(m) != nil {
			return fmt.Errorf("child %q: its function sets an owner reference with controller: true, and so does its set; leave it out", c.name)
		}
		m.SetOwnerReferences(append(m.GetOwnerReferences(), metav1.OwnerReference{
			APIVersion: w.owner.GroupVersion().String(), Kind: w.owner.Kind, Name: owner.Name, UID: owner.uid,
			Controller: new(true), BlockOwnerDeletion: new(true),
		}))
	}
	if c.protected {
		m.SetFinalizers(append(m.GetFinalizers(), w.names.finalizer()))
	}
	text, err := json.Marshal(m.Object)
	if err != nil {
		return fmt.Errorf("child %q: %w", c.name, err)
	}
	sum := sha256.Sum256(text)
	m.SetAnnotations(with(m.GetAnnotations(), map[string]string{w.names.digest(): base64.RawURLEncoding.EncodeToString(sum[:16])}))
	return nil
}

// with returns a map with more in it.
func with(m, more map[string]string) map[string]string {
	if m == nil {
		return more
	}
	maps.Copy(m, more)
	return m
}

// withoutNull removes fields that are null, as Go types without a value may give: an apply would remove what others
// have there.
func withoutNull(fields map[string]any) map[string]any {
	for name, value := range fields {
		switch value := value.(type) {
		case nil:
			delete(fields, name)
		case map[string]any:
			withoutNull(value)
		case []any:
			for _, item := range value {
				if item, ok := item.(map[string]any); ok {
					withoutNull(item)
				}
			}
		}
	}
	return fields
}

// withoutEmpty removes structs that their type says to leave out if they are empty, which the encoding does not do: a
// Service would ask for target port 0, in place of which the API server chooses one, and would never be as described.
func withoutEmpty(typed reflect.Value, content any) {
	for typed.Kind() == reflect.Pointer || typed.Kind() == reflect.Interface {
		typed = typed.Elem()
	}
	switch content := content.(type) {
	case []any:
		if typed.Kind() == reflect.Slice && typed.Len() == len(content) {
			for i, item := range content {
				withoutEmpty(typed.Index(i), item)
			}
		}
	case map[string]any:
		if typed.Kind() == reflect.Struct {
			withoutEmptyIn(typed, content)
		} else if typed.Kind() == reflect.Map {
			for _, key := range typed.MapKeys() {
				withoutEmpty(typed.MapIndex(key), content[key.String()])
			}
		}
	}
}

// withoutEmptyIn removes them from the fields of a struct.
func withoutEmptyIn(typed reflect.Value, content map[string]any) {
	for field, value := range typed.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported():
		case name == "" && field.Anonymous:
			withoutEmpty(value, content)
		case field.Type.Kind() == reflect.Struct && value.IsZero() && strings.Contains(options, "omitempty"):
			delete(content, name)
		default:
			withoutEmpty(value, content[name])
		}
	}
}

// namespacedIn reports whether objects of a mapping have a namespace.
func namespacedIn(m *meta.RESTMapping) bool { return m.Scope.Name() == meta.RESTScopeNameNamespace }
