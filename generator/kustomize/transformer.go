package kustomize

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/internal/rendering"
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
		if err := set(r.Component, &overlay); err != nil || reflect.DeepEqual(overlay, types.Kustomization{}) {
			return err
		}
		before := s.Objects()
		if i := slices.Index(before, nil); i >= 0 {
			return fmt.Errorf("object %d of the set is nil; leave it out", i+1)
		}
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
	if reflect.DeepEqual(overlay, types.Kustomization{}) {
		for _, obj := range objects {
			u, err := rendering.Plain(obj)
			if err != nil {
				return nil, nil, err
			}
			after = append(after, u)
		}
		return after, nil, nil
	}
	plain := make([]*unstructured.Unstructured, len(objects))
	for i, obj := range objects {
		if plain[i], err = rendering.Plain(obj); err != nil {
			return nil, nil, err
		}
	}
	after = make([]*unstructured.Unstructured, len(objects))
	done := map[int]bool{}
	for n, selected := range distinct(plain) {
		made, more, err := overlaid(plain, selected, overlay)
		if err != nil {
			return nil, nil, err
		}
		if n == 0 {
			added = more
		}
		for _, i := range selected {
			if !done[i] {
				after[i], done[i] = made[i], true
			}
		}
	}
	return after, added, nil
}

// distinct returns selections of objects that between them have all. An object can be there more than once, for example as a
// hook of installations and of deletions, and kustomize takes each once. So the first selection has the first of each name,
// and each of the others has the next ones in their places: the overlay finds everything that it is about.
func distinct(objects []*unstructured.Unstructured) [][]int {
	var names []string
	same, most := map[string][]int{}, 1
	for i, u := range objects {
		name := effective(u)
		if same[name] == nil {
			names = append(names, name)
		}
		same[name] = append(same[name], i)
		most = max(most, len(same[name]))
	}
	selections := make([][]int, most)
	for n := range selections {
		for _, name := range names {
			selections[n] = append(selections[n], same[name][min(n, len(same[name])-1)])
		}
	}
	return selections
}

// effective identifies an object as kustomize does.
func effective(u *unstructured.Unstructured) string {
	return strings.Join([]string{u.GroupVersionKind().String(), cmp.Or(u.GetNamespace(), "default"), u.GetName()}, " ")
}

// overlaid builds an overlay over the selected objects. It returns what became of each, by its index, and what was added.
func overlaid(objects []*unstructured.Unstructured, selected []int, overlay types.Kustomization) (after map[int]*unstructured.Unstructured, added []*unstructured.Unstructured, err error) {
	built, ids, err := build(objects, selected, overlay)
	if err != nil {
		return nil, nil, err
	}
	after = map[int]*unstructured.Unstructured{}
	var lost []*unstructured.Unstructured
	for _, u := range built {
		annotations := u.GetAnnotations()
		i, err := strconv.Atoi(annotations[indexed])
		if err != nil {
			lost = append(lost, u)
			continue
		}
		delete(annotations, indexed)
		u.SetAnnotations(annotations)
		if len(annotations) == 0 {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
		}
		after[i] = u
	}
	for _, u := range lost {
		switch i, found := ids[idOf(u)]; {
		case found && after[i] == nil: // a patch replaced its annotations
			after[i] = u
		case adds(overlay):
			added = append(added, u)
		default:
			return nil, nil, fmt.Errorf("%s: it renames %s %s and removes its annotations; do one of both", overlayName, u.GetKind(), u.GetName())
		}
	}
	return after, added, nil
}

// build builds an overlay over the selected objects, which have their index in an annotation. ids are the indexes by what
// identifies them.
func build(objects []*unstructured.Unstructured, selected []int, overlay types.Kustomization) (built []*unstructured.Unstructured, ids map[string]int, err error) {
	openapi.Schema() // as in check
	var text bytes.Buffer
	ids = map[string]int{}
	for _, i := range selected {
		u := objects[i].DeepCopy()
		ids[idOf(u)] = i
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
	if len(selected) == 0 {
		t.add("kustomization.yaml", []byte("labels: [{pairs: {none: none}}]\n")) // kustomize refuses an empty one
	}
	g := &Generator{path: ".", tree: t, checked: map[string]bool{".": true}}
	built, err = g.objects(Build{Overlay: overlay}, Options{})
	return built, ids, err
}

// idOf identifies an object among others.
func idOf(u *unstructured.Unstructured) string {
	return strings.Join([]string{u.GroupVersionKind().GroupKind().String(), u.GetNamespace(), u.GetName()}, " ")
}

// adds reports whether an overlay has objects of its own.
func adds(o types.Kustomization) bool {
	return len(o.ConfigMapGenerator)+len(o.SecretGenerator)+len(o.Generators)+len(o.Components)+len(resourcesOf(&o)) > 0
}
