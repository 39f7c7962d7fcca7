package kustomize

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/trimtab-dev/trimtab/component"
)

// Transform returns a [component.Transformer] that changes the objects of another renderer, such as one of a chart, by an
// overlay over them, whose fields a function sets from a component: patches, images, replicas, labels. See
// [component.Chain].
//
// The settings of a [component.Dependent] stay. Objects that the overlay generates are added, and those that a patch
// deletes are left out. What [component.From] makes later is not changed.
func Transform[T component.Object](set func(c T, overlay *types.Kustomization) error) component.Transformer[T] {
	return func(_ context.Context, r component.RenderRequest[T], s *component.Set) error {
		var overlay types.Kustomization
		if err := set(r.Component, &overlay); err != nil {
			return err
		}
		before := s.Objects()
		after, added, err := transform(before, overlay)
		if err != nil {
			return err
		}
		next := 0
		err = s.Each(func(obj client.Object) (client.Object, error) {
			if next == len(before) { // it is made later
				return obj, nil
			}
			next++
			if u := after[next-1]; u != nil {
				return u, nil
			}
			return nil, nil //nolint:nilnil // it is left out
		})
		for _, u := range added {
			s.Add(u)
		}
		return err
	}
}

// Transformer changes objects by an overlay over them. It is an object transformer for transform.New. The zero value
// changes nothing.
type Transformer struct{ Overlay types.Kustomization }

// TransformObjects returns the objects as the overlay makes them.
func (t Transformer) TransformObjects(_, _ string, objects []client.Object) ([]client.Object, error) {
	after, added, err := transform(objects, t.Overlay)
	var out []client.Object
	for _, u := range append(after, added...) {
		if u != nil {
			out = append(out, u)
		}
	}
	return out, err
}

// Version identifies the overlay.
func (t Transformer) Version() string {
	text, err := json.Marshal(t.Overlay)
	if err != nil {
		return err.Error()
	}
	return (&tree{}).digest(text)
}

// indexed is the annotation by which objects are found again.
const indexed = "trimtab.dev/index"

// transform builds an overlay over objects. It returns what became of each, nil for those that were left out, and what
// was added.
func transform(objects []client.Object, overlay types.Kustomization) (after, added []*unstructured.Unstructured, err error) {
	openapi.Schema() // as in check
	var text bytes.Buffer
	for i, obj := range objects {
		u, err := plain(obj)
		if err != nil {
			return nil, nil, err
		}
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[indexed] = strconv.Itoa(i)
		u.SetAnnotations(annotations)
		document, err := u.MarshalJSON()
		if err != nil {
			return nil, nil, err
		}
		fmt.Fprintf(&text, "---\n%s\n", document)
	}
	const file = "objects.yaml"
	t := &tree{files: map[string][]byte{}, folders: map[string]bool{}}
	t.add(file, text.Bytes())
	t.add("kustomization.yaml", []byte("resources: ["+file+"]\n"))
	if len(objects) == 0 {
		t.add("kustomization.yaml", []byte("{kind: Kustomization}\n"))
	}
	g := &Generator{path: ".", tree: t, checked: map[string]bool{".": true}}
	built, err := g.objects(Build{Overlay: overlay}, Options{})
	if err != nil {
		return nil, nil, err
	}
	after = make([]*unstructured.Unstructured, len(objects))
	for _, u := range built {
		annotations := u.GetAnnotations()
		i, err := strconv.Atoi(annotations[indexed])
		if err != nil {
			added = append(added, u)
			continue
		}
		delete(annotations, indexed)
		u.SetAnnotations(annotations)
		if len(annotations) == 0 {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
		}
		after[i] = u
	}
	return after, added, nil
}

// plain returns a copy of an object without its type.
func plain(obj client.Object) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.DeepCopy(), nil
	}
	kind := obj.GetObjectKind().GroupVersionKind()
	if known, err := apiutil.GVKForObject(obj, scheme.Scheme); err == nil {
		kind = known
	} else if kind.Empty() {
		return nil, fmt.Errorf("%T %s: set its TypeMeta, so that its kind is known: %w", obj, obj.GetName(), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind.Kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u, nil
}
