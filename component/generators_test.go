package component_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/helm"
	"github.com/trimtab-dev/trimtab/generator/kustomize"
	"github.com/trimtab-dev/trimtab/generator/templates"
	"github.com/trimtab-dev/trimtab/generator/transform"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
)

// parameters are those of the components in TestGenerators: the first object of their specs.
type parameters struct {
	// Value is in each ConfigMap. An empty one is an error.
	Value string `json:"value"`
	// Extra says that there is a second ConfigMap.
	Extra bool `json:"extra"`
}

// given are parameters in the form of a generator.
type given map[string]any

func (g given) ToUnstructured() map[string]any { return g }

func settings(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value}}
}

var errEmpty = errors.New("value is required")

// TestGenerators: a component has one life, whatever its manifests come from.
func TestGenerators(t *testing.T) {
	t.Parallel()
	chart, err := helm.NewGenerator(fstest.MapFS{
		"Chart.yaml":  {Data: []byte("apiVersion: v2\nname: lives\nversion: 1.0.0\n")},
		"values.yaml": {Data: []byte("extra: false\n")},
		"templates/one.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n" +
			`data: {value: {{ required "value is required" .Values.value | quote }}}`)},
		"templates/extra.yaml": {Data: []byte("{{ if .Values.extra }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n" +
			"data: {value: {{ .Values.value | quote }}}\n{{ end }}")},
	}, ".", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	base, err := kustomize.NewGenerator(fstest.MapFS{
		"base/kustomization.yaml":  {Data: []byte("resources: [one.yaml]\n")},
		"base/one.yaml":            {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n")},
		"extra/kustomization.yaml": {Data: []byte("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [extra.yaml]\n")},
		"extra/extra.yaml":         {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n")},
	}, "base", kustomize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	folder, err := templates.NewGenerator(fstest.MapFS{
		"one.yaml":    {Data: []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {value: "{{ .value }}"}}`)},
		"extra.yaml":  {Data: []byte("{{ if .extra }}{{ include \"_extra.yaml\" . }}{{ end }}")},
		"_extra.yaml": {Data: []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {value: "{{ .value }}"}}`)},
	}, ".", templates.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The template makes values of parameters, the chart the objects, and both transformers change them.
	defaults, err := templates.NewParameters(fstest.MapFS{"p": {Data: []byte(`{value: "${V}", extra: {{ .extra }}}`)}}, "p")
	if err != nil {
		t.Fatal(err)
	}
	for name, generate := range map[string]func(context.Context, call, parameters) ([]client.Object, error){
		"own": func(_ context.Context, _ call, p parameters) ([]client.Object, error) {
			if p.Value == "" {
				return nil, errEmpty
			}
			objects := []client.Object{settings("one", p.Value)}
			if p.Extra {
				objects = append(objects, settings("extra", p.Value))
			}
			return objects, nil
		},
		"Helm": func(ctx context.Context, c call, p parameters) ([]client.Object, error) {
			return chart.Generate(ctx, c.namespace, c.name, given{"value": p.Value, "extra": p.Extra})
		},
		"kustomize": func(ctx context.Context, c call, p parameters) ([]client.Object, error) {
			overlay := given{"patches": []any{map[string]any{
				"target": map[string]any{"kind": "ConfigMap"}, "patch": `[{"op": "add", "path": "/data", "value": {"value": "` + p.Value + `"}}]`,
			}}}
			if p.Value == "" {
				overlay["patch"] = "there is no such field"
			}
			if p.Extra {
				overlay["components"] = []any{"extra"}
			}
			return base.Generate(ctx, c.namespace, c.name, overlay)
		},
		"templates": func(ctx context.Context, c call, p parameters) ([]client.Object, error) {
			values := given{"extra": p.Extra}
			if p.Value != "" {
				values["value"] = p.Value
			}
			return folder.Generate(ctx, c.namespace, c.name, values)
		},
		"transformers": func(ctx context.Context, c call, p parameters) ([]client.Object, error) {
			variables := map[string]string{"V": "${W}"}
			if p.Value != "" {
				variables["V"] = "value-" + p.Value
			}
			overlay := types.Kustomization{Patches: []types.Patch{{
				Target: &types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Kind: "ConfigMap"}}},
				Patch:  `[{"op": "replace", "path": "/data/value", "value": "` + p.Value + `"}]`,
			}}}
			if p.Value == "" {
				overlay.Patches[0].Target.Name = "one"
				overlay.Patches[0].Patch = `[{"op": "replace", "path": "/data/missing/value", "value": ""}]`
			}
			g := transform.New(chart).WithParameterTransformer(defaults).
				WithObjectTransformer(transform.Substitution{Variables: variables}).WithObjectTransformer(kustomize.Transformer{Overlay: overlay})
			return g.Generate(ctx, c.namespace, c.name, given{"extra": p.Extra})
		},
	} {
		t.Run("004-23 "+name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.tune = func(o *component.Options[*product.Product]) { o.RequeueInterval = 50 * time.Millisecond }
			s.generator.set("1", func(ctx context.Context, c call) ([]client.Object, error) {
				var p parameters
				spec, _ := c.parameters.(*product.Spec)
				if err := json.Unmarshal(spec.Objects[0].Raw, &p); err != nil {
					return nil, err
				}
				return generate(ctx, c, p)
			})
			s.start().lives(t)
		})
	}
}

// TestTemplates: functions of templates ask for the component and its cluster, and what they find is tracked.
func TestTemplates(t *testing.T) {
	t.Parallel()
	g, err := templates.NewGenerator(fstest.MapFS{"a.yaml": {Data: []byte(`
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data:
  component: {{ component.GetName }} of {{ namespace }}
  revision: {{ componentRevision | quote }}
  digest: {{ len componentDigest | quote }}
  minor: {{ gt (atoi kubernetesVersion.Minor) 30 | quote }}
  serves: {{ has "apps/v1/Deployment" apiVersions }}-{{ has "apps/v1/Nothing" apiVersions }}
  found: {{ (lookup "v1" "ConfigMap" namespace "asked").data | default dict | dig "a" "nothing" }}
  list: {{ len (lookupList "v1" "Secret" namespace) | quote }}
`)}}, ".", templates.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newShop(t)
	s.tune = func(o *component.Options[*product.Product]) { o.RequeueInterval = 50 * time.Millisecond }
	s.generator.set("1", func(ctx context.Context, c call) ([]client.Object, error) {
		return g.Generate(ctx, c.namespace, c.name, given{})
	})
	s.start()
	s.create(product.Spec{})
	want := map[string]string{
		"component": "a of " + s.namespace, "revision": "1", "digest": "64", "minor": "true", "serves": "true-false", "found": "nothing", "list": "0",
	}
	check := func() {
		t.Helper()
		got := testenv.Wait(t, s.admin, s.configMap("one"), "what is found", func(m *corev1.ConfigMap) bool {
			return m.Data["found"] == want["found"] && m.Data["list"] == want["list"]
		})
		if diff := cmp.Diff(want, got.Data); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	check()
	s.is("Ready", "Ready")
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "asked"}, Data: map[string]string{"a": "something"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "s"}},
	} {
		if err := s.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	want["found"], want["list"] = "something", "1"
	check()
}

// lives is the life of a component: it is created, left alone, disturbed, changed, broken, mended and deleted.
func (s *shop) lives(t *testing.T) {
	t.Helper()
	has := func(name, value string) *corev1.ConfigMap {
		t.Helper()
		return testenv.Wait(t, s.admin, s.configMap(name), value, func(m *corev1.ConfigMap) bool { return m.Data["value"] == value })
	}
	s.create(product.Spec{Objects: []runtime.RawExtension{{Raw: []byte(`{"value":"1","extra":true}`)}}})
	s.is("Ready", "Ready")
	one := has("one", "1")
	has("extra", "1")

	_, renderings := s.generator.counts()
	s.requests.Reset()
	s.passes(5)
	if sent := s.requests.Select(func(r testenv.Request) bool { return r.Verb != "watch" }); len(sent) > 0 {
		t.Errorf("at rest these requests were sent: %v", sent)
	}
	if _, now := s.generator.counts(); now != renderings {
		t.Errorf("at rest it was rendered %d times", now-renderings)
	}

	edited := one.DeepCopy()
	edited.Data["value"] = "edited"
	if err := s.admin.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	has("one", "1")
	if err := s.admin.Delete(t.Context(), s.configMap("extra")); err != nil {
		t.Fatal(err)
	}
	has("extra", "1")

	s.patch(`{"spec":{"objects":[{"value":"2"}]}}`)
	if changed := has("one", "2"); changed.UID != one.UID {
		t.Error("the update deleted it and created another one")
	}
	testenv.Gone(t, s.admin, s.configMap("extra"), "what is no longer rendered")
	s.is("Ready", "Ready")

	before := has("one", "2").ResourceVersion
	s.patch(`{"spec":{"objects":[{"value":""}]}}`)
	s.await("an error", func(p *product.Product) bool { return p.Status.State == "Error" })
	if now := has("one", "2").ResourceVersion; now != before {
		t.Errorf("what cannot be rendered changed something: version %s, before %s", now, before)
	}
	s.patch(`{"spec":{"objects":[{"value":"3","extra":true}]}}`)
	has("one", "3")
	has("extra", "3")
	var names []string
	for _, item := range s.is("Ready", "Ready").Status.Inventory {
		names = append(names, item.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"extra", "one"}, names); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}

	s.delete()
	testenv.Gone(t, s.admin, s.named("a"), "the component")
	testenv.Gone(t, s.admin, s.configMap("one"), "one")
	testenv.Gone(t, s.admin, s.configMap("extra"), "extra")
}
