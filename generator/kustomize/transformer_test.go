package kustomize_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/kustomize"
)

// inGo renders a shop in Go.
func inGo(context.Context, component.RenderRequest[*Shop]) (component.Set, error) {
	server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "server"}}
	server.Spec.Template.Spec.Containers = []corev1.Container{{Name: "server", Image: "shop:1"}}
	var s component.Set
	settings := s.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Annotations: map[string]string{"a": "b"}}}).Wave(2)
	s.Add(server).After(settings)
	s.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "unused"}})
	s.Do("migrate", "1", func(context.Context) error { return nil })
	return s, nil
}

func TestTransform(t *testing.T) {
	t.Parallel()
	render := func(set func(s *Shop, overlay *types.Kustomization) error) (map[string]client.Object, error) {
		r := component.Chain(component.RenderFunc[*Shop](inGo), kustomize.Transform(set))
		out, err := r.Render(t.Context(), component.RenderRequest[*Shop]{Component: &Shop{Spec: ShopSpec{Version: "2", Servers: 3}}})
		if err != nil {
			return nil, err
		}
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme} {
			if err := add(scheme); err != nil {
				return nil, err
			}
		}
		objects, err := out.Annotated("op", scheme)
		found := map[string]client.Object{}
		for _, o := range objects {
			found[o.GetName()] = o
		}
		return found, err
	}
	got, err := render(func(s *Shop, overlay *types.Kustomization) error {
		overlay.Images = []types.Image{{Name: "shop", NewTag: s.Spec.Version}}
		overlay.Replicas = []types.Replica{{Name: "server", Count: s.Spec.Servers}}
		overlay.Patches = []types.Patch{{Patch: "{apiVersion: v1, kind: Secret, metadata: {name: unused}, $patch: delete}"}}
		overlay.ConfigMapGenerator = []types.ConfigMapArgs{{GeneratorArgs: types.GeneratorArgs{
			Name: "more", KvPairSources: types.KvPairSources{LiteralSources: []string{"a=b"}}, Options: &types.GeneratorOptions{DisableNameSuffixHash: true},
		}}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	annotations := map[string]map[string]string{}
	for name, o := range got {
		annotations[name] = o.GetAnnotations()
	}
	if diff := cmp.Diff(map[string]map[string]string{
		"settings": {"a": "b", "op/apply-order": "2"}, "server": {"op/depends-on": "/ConfigMap//settings"}, "migrate": nil, "more": nil,
	}, annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	server := &appsv1.Deployment{}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(got["server"])
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, server); err != nil {
		t.Fatal(err)
	}
	if image, replicas := server.Spec.Template.Spec.Containers[0].Image, server.Spec.Replicas; image != "shop:2" || replicas == nil || *replicas != 3 {
		t.Errorf("image %s, replicas %v", image, replicas)
	}

	got, err = render(func(_ *Shop, overlay *types.Kustomization) error {
		overlay.Patches = []types.Patch{{
			Target: &types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Kind: "ConfigMap"}}},
			Patch:  `[{"op": "add", "path": "/metadata/annotations", "value": {"c": "d"}}]`,
		}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"c": "d", "op/apply-order": "2"}, got["settings"].GetAnnotations()); diff != "" {
		t.Errorf("annotations that a patch replaced (-want +got):\n%s", diff)
	}
	if got, err = render(func(*Shop, *types.Kustomization) error { return nil }); err != nil || len(got) != 4 {
		t.Errorf("an empty overlay: %d objects, %v", len(got), err)
	}
	empty := component.RenderFunc[*Shop](func(context.Context, component.RenderRequest[*Shop]) (component.Set, error) {
		return component.Set{}, nil
	})
	set, err := component.Chain(empty, kustomize.Transform(func(_ *Shop, overlay *types.Kustomization) error {
		overlay.Images = []types.Image{{Name: "shop", NewTag: "2"}}
		return nil
	})).Render(t.Context(), component.RenderRequest[*Shop]{Component: &Shop{}})
	if err != nil || len(set.Objects()) != 0 {
		t.Errorf("an overlay over nothing: %v, %v", set.Objects(), err)
	}

	for want, set := range map[string]func(*types.Kustomization){
		"it renames ConfigMap new-settings and removes its annotations": func(o *types.Kustomization) {
			o.NamePrefix = "new-"
			o.Patches = []types.Patch{{Patch: "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, annotations: null}}"}}
		},
		"the overlay: base does not exist": func(o *types.Kustomization) { o.Resources = []string{"base"} },
		"no matches for Id": func(o *types.Kustomization) {
			o.Patches = []types.Patch{{Patch: "{apiVersion: v1, kind: Pod, metadata: {name: a}}"}}
		},
		"https://example.org/x": func(o *types.Kustomization) { o.Resources = []string{"https://example.org/x"} },
	} {
		_, err := render(func(_ *Shop, o *types.Kustomization) error { set(o); return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

// TestTransformer: an error of kustomize does not have what is in the objects.
func TestTransformer(t *testing.T) {
	t.Parallel()
	secret := func(namespace string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pw"}, StringData: map[string]string{"password": "TOPSECRET"}}
	}
	_, err := kustomize.Transformer{Overlay: types.Kustomization{Namespace: "one"}}.TransformObjects("", "", []client.Object{secret("p"), secret("q")})
	if err == nil || !strings.Contains(err.Error(), "makes two objects the same") || strings.Contains(err.Error(), "TOPSECRET") {
		t.Errorf("the error is %v", err)
	}
}

// TestTransformDuplicates: an object may be there more than once, as a chart has it whose hook is for installations and for
// deletions. The overlay changes each, finds what it is about each time, and adds what it generates once.
func TestTransformDuplicates(t *testing.T) {
	t.Parallel()
	job := func(arg string) client.Object {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "work"}}
		j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "work", Image: "shop:1", Args: []string{arg}}}
		return j
	}
	renderer := component.RenderFunc[*Shop](func(context.Context, component.RenderRequest[*Shop]) (component.Set, error) {
		var s component.Set
		s.Add(job("before")).PreDelete()
		s.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}})
		s.Add(job("install")).Wave(1)
		s.Add(job("after")).PostDelete()
		return s, nil
	})
	set, err := component.Chain(renderer, kustomize.Transform(func(_ *Shop, overlay *types.Kustomization) error {
		overlay.NamePrefix = "my-"
		overlay.Images = []types.Image{{Name: "shop", NewTag: "2"}}
		overlay.Patches = []types.Patch{
			{Patch: "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}"},
			{Patch: "{apiVersion: batch/v1, kind: Job, metadata: {name: work, annotations: {c: d}}}"},
		}
		overlay.SecretGenerator = []types.SecretArgs{{GeneratorArgs: types.GeneratorArgs{Name: "more"}}}
		return nil
	})).Render(t.Context(), component.RenderRequest[*Shop]{Component: &Shop{}})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := set.Annotated("op", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		j := &batchv1.Job{}
		if u, ok := o.(*unstructured.Unstructured); !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, j) != nil {
			t.Fatalf("%T", o)
		}
		text := j.Kind + " " + j.Name + " " + fmt.Sprint(j.Annotations)
		for _, c := range j.Spec.Template.Spec.Containers {
			text += " " + c.Image + " " + c.Args[0]
		}
		got = append(got, text)
	}
	want := []string{
		"Job my-work map[c:d op/apply-on:pre-delete] shop:2 before",
		"ConfigMap my-settings map[]",
		"Job my-work map[c:d op/apply-order:1] shop:2 install",
		"Job my-work map[c:d op/apply-on:post-delete] shop:2 after",
		"Secret my-more-46f8b28mk5 map[]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the set (-want +got):\n%s", diff)
	}
}
