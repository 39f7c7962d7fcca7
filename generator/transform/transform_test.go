package transform_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/kustomize"
	"github.com/trimtab-dev/trimtab/generator/transform"
	"github.com/trimtab-dev/trimtab/loop"
)

// values are parameters.
type values map[string]any

func (v values) ToUnstructured() map[string]any { return v }

// settings is a generator of one ConfigMap with the parameters.
type settings struct{}

func (settings) Generate(_ context.Context, _, name string, parameters component.Unstructurable) ([]client.Object, error) {
	data := map[string]string{}
	for key, value := range parameters.ToUnstructured() {
		data[key] = fmt.Sprint(value)
	}
	return []client.Object{&corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data,
	}}, nil
}

func (settings) Version() string                          { return "1" }
func (settings) Needs() []loop.Need                       { return []loop.Need{{Verbs: []string{"get"}}} }
func (settings) AddToScheme(scheme *runtime.Scheme) error { return appsv1.AddToScheme(scheme) }

var (
	// defaults sets parameters that a component does not set.
	defaults = transform.ParameterFunc(func(_, _ string, p component.Unstructurable) (component.Unstructurable, error) {
		return values(transform.MergeMaps(map[string]any{"replicas": int64(1), "host": "${HOST}"}, p.ToUnstructured())), nil
	})
	errNo = errors.New("no")
)

// Transformers set defaults before a generator is called, and change what it returns.
func ExampleNew() {
	g := transform.New(settings{}).
		WithParameterTransformer(defaults).
		WithObjectTransformer(transform.Substitution{Variables: map[string]string{"HOST": "shop.example.org"}}).
		WithObjectTransformer(kustomize.Transformer{Overlay: types.Kustomization{NameSuffix: "-eu"}})
	objects, err := g.Generate(context.Background(), "ns", "shop", values{"replicas": 3})
	if err != nil {
		panic(err)
	}
	data, _, _ := unstructured.NestedStringMap(objects[0].(*unstructured.Unstructured).Object, "data")
	fmt.Println(objects[0].GetName(), data["host"], data["replicas"])
	// Output:
	// shop-eu shop.example.org 3
}

func TestTransformable(t *testing.T) {
	t.Parallel()
	wrong := transform.New(settings{}).WithParameterTransformer(defaults).WithParameterTransformer(transform.ParameterFunc(
		func(_, _ string, p component.Unstructurable) (component.Unstructurable, error) { return p, errNo }))
	if _, err := wrong.Generate(t.Context(), "ns", "a", values{}); err == nil || err.Error() != "parameter transformer 2: no" {
		t.Errorf("the error is %v", err)
	}
	wrong = transform.New(settings{}).WithObjectTransformer(transform.ObjectFunc(
		func(_, _ string, objects []client.Object) ([]client.Object, error) { return objects, errNo }))
	if _, err := wrong.Generate(t.Context(), "ns", "a", values{}); !errors.Is(err, errNo) || err.Error() != "object transformer 1: no" {
		t.Errorf("the error is %v", err)
	}
	g := transform.New(settings{})
	if g.Version() != "1" || len(g.Needs()) != 1 {
		t.Error("the version or the permissions are lost")
	}
	scheme := runtime.NewScheme()
	if err := g.AddToScheme(scheme); err != nil || !scheme.Recognizes(appsv1.SchemeGroupVersion.WithKind("Deployment")) {
		t.Error("the types are lost")
	}
	seen := map[string]bool{}
	for _, t := range []transform.ObjectTransformer{
		transform.Substitution{},
		transform.Substitution{Variables: map[string]string{"A": "1"}},
		transform.Substitution{Variables: map[string]string{"A": "2"}},
		kustomize.Transformer{},
		kustomize.Transformer{Overlay: types.Kustomization{NamePrefix: "a"}},
	} {
		seen[transform.New(settings{}).WithObjectTransformer(t).Version()] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d versions, want 5", len(seen))
	}
}

func TestSubstitution(t *testing.T) {
	t.Parallel()
	s := transform.Substitution{
		Variables: map[string]string{"HOST": "example.org", "N": "3", "OPEN": "[", "EMPTY": ""},
		Match:     func(o client.Object) bool { return o.GetLabels()["substitute"] != "no" },
	}
	object := func(spec any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}, "spec": spec,
		}}
	}
	for text, want := range map[string]any{
		"https://${HOST}/": "https://example.org/", "${N}": int64(3), "${M:=4}": int64(4), "${EMPTY:-x}": "x", "$${HOST}": "${HOST}", "$HOST": "$HOST",
	} {
		out, err := s.Replace(object(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		u, _ := out.(*unstructured.Unstructured)
		if diff := cmp.Diff(want, u.Object["spec"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for text, want := range map[string]string{
		"${MISSING}": "Thing a: the variable MISSING has no value",
		"${HOST":     "Thing a: ",
		"${OPEN}":    "Thing a: with the values of its variables: ",
	} {
		if _, err := s.Replace(object(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"$$", "no variable"} {
		if out, err := s.Replace(object(text)); err != nil || out.(*unstructured.Unstructured).Object["spec"] != text {
			t.Errorf("%s became %v, %v", text, out, err)
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "c"}, StringData: map[string]string{"a": "${HOST}"}}
	if out, err := s.Replace(secret); err != nil || out.GetObjectKind().GroupVersionKind().Kind != "Secret" {
		t.Errorf("an object without TypeMeta: %v, %v", out, err)
	}
	left := object("${MISSING}")
	left.SetLabels(map[string]string{"substitute": "no"})
	if out, err := s.Replace(left); err != nil || out != client.Object(left) {
		t.Errorf("an object that does not match is changed: %v", err)
	}
	typed := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "b"}, Data: map[string]string{"a": "${HOST}"}}
	out, err := s.TransformObjects("", "", []client.Object{typed})
	if err != nil {
		t.Fatal(err)
	}
	if data, _, _ := unstructured.NestedString(out[0].(*unstructured.Unstructured).Object, "data", "a"); data != "example.org" {
		t.Errorf("the value is %s", data)
	}
}

func TestMergeMaps(t *testing.T) {
	t.Parallel()
	x := map[string]any{"a": map[string]any{"b": int64(1), "c": int64(2)}, "d": []any{"x"}, "e": map[string]any{}, "i": 1}
	y := map[string]any{"a": map[string]any{"c": int64(3), "f": nil}, "d": []any{"y"}, "e": "text", "g": map[string]any{"h": true}}
	want := map[string]any{"a": map[string]any{"b": int64(1), "c": int64(3), "f": nil}, "d": []any{"y"}, "e": "text", "g": map[string]any{"h": true}, "i": 1}
	got := transform.MergeMaps(x, y)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got["a"].(map[string]any)["b"], got["g"].(map[string]any)["h"] = "changed", "changed"
	if x["a"].(map[string]any)["b"] != int64(1) || y["g"].(map[string]any)["h"] != true {
		t.Error("the result shares a map with what was merged")
	}
	if got := transform.MergeMaps(nil, nil); got == nil || len(got) != 0 {
		t.Errorf("nothing and nothing is %v", got)
	}
}
