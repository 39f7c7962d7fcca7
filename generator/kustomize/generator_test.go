package kustomize_test

import (
	"errors"
	"maps"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ktypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/kustomize"
)

// names are the kinds, namespaces and names of objects.
func names(objects []client.Object) []string {
	var out []string
	for _, o := range objects {
		out = append(out, o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetNamespace()+"/"+o.GetName())
	}
	return out
}

const bound = configMap + `---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a, namespace: named}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: default, namespace: default}]
`

func TestGenerate(t *testing.T) {
	part := "kind: Component\nconfigMapGenerator: [{name: part, literals: [a=b], options: {disableNameSuffixHash: true}}]\n"
	fsys := files(app("", map[string]string{"app/a.yaml": bound, "parts/one/kustomization.yaml": part}))
	for name, test := range map[string]struct {
		why        string
		options    kustomize.Options
		parameters parameters
		want       []string
	}{
		"nothing": {"names and namespaces are those of the files", kustomize.Options{}, nil, []string{"RoleBinding named/a", "ConfigMap /a"}},
		"namespace": {
			"all go to the namespace of the component",
			kustomize.Options{Namespace: true},
			parameters{},
			[]string{"RoleBinding ns/a", "ConfigMap ns/a"},
		},
		"prefix": {
			"all have the name of the component",
			kustomize.Options{NamePrefix: true},
			parameters{},
			[]string{"RoleBinding named/comp-a", "ConfigMap /comp-a"},
		},
		"priority": {
			"the overlay has priority over the options",
			kustomize.Options{Namespace: true, NamePrefix: true},
			parameters{"namespace": "mine", "namePrefix": "x-"},
			[]string{"RoleBinding mine/x-a", "ConfigMap mine/x-a"},
		},
		"component": {
			"a part is switched on by its path in the file system",
			kustomize.Options{NamePrefix: true},
			parameters{"components": []string{"parts/one"}},
			[]string{"RoleBinding named/comp-a", "ConfigMap /comp-a", "ConfigMap /comp-part"},
		},
		"generated": {
			"an overlay has everything that a kustomization has",
			kustomize.Options{},
			parameters{"secretGenerator": []any{parameters{"name": "s", "literals": []string{"a=b"}}}, "nameSuffix": "-z"},
			[]string{"RoleBinding named/a-z", "ConfigMap /a-z", "Secret /s-z-k695gkmbtk"},
		},
		"kind": {
			"the kind of an overlay is clear",
			kustomize.Options{},
			parameters{"apiVersion": "v1", "kind": "Component", "namePrefix": "x-"},
			[]string{"RoleBinding named/x-a", "ConfigMap /x-a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := kustomize.NewGenerator(fsys, "app", test.options)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := g.Generate(t.Context(), "ns", "comp", test.parameters)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, names(objects)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, diff)
			}
		})
	}
}

// References to a namespace follow the objects.
func TestNamespaceOfSubjects(t *testing.T) {
	g, err := kustomize.NewGenerator(files(app("", map[string]string{"app/a.yaml": bound})), "app", kustomize.Options{Namespace: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range render(t, g, kustomize.Build{Namespace: "ns"}) {
		subjects, found, _ := unstructured.NestedSlice(o, "subjects")
		if !found {
			continue
		}
		want := []any{map[string]any{"kind": "ServiceAccount", "name": "default", "namespace": "ns"}}
		if diff := cmp.Diff(want, subjects); diff != "" {
			t.Errorf("subjects (-want +got):\n%s", diff)
		}
		return
	}
	t.Error("no subjects")
}

func TestRenderer(t *testing.T) {
	g, err := kustomize.NewGenerator(files(app("", nil)), "app", kustomize.Options{Namespace: true})
	if err != nil {
		t.Fatal(err)
	}
	wrong := errors.New("wrong")
	r := kustomize.NewRenderer(g, func(s *Shop, overlay *types.Kustomization) error {
		if s.Spec.Servers < 0 {
			return wrong
		}
		overlay.NamePrefix = s.Spec.Version + "-"
		return nil
	})
	request := component.RenderRequest[*Shop]{Component: &Shop{Spec: ShopSpec{Version: "one"}}, NamespacedName: ktypes.NamespacedName{Namespace: "ns", Name: "comp"}}
	set, err := r.Render(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := set.Annotated("op.test", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ConfigMap ns/one-a"}, names(objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	request.Component.Spec.Servers = -1
	if _, err := r.Render(t.Context(), request); !errors.Is(err, wrong) {
		t.Errorf("error %v, not that of the function", err)
	}
	if v, ok := r.(component.Versioned); !ok || v.Version() != g.Version() {
		t.Error("the renderer has not the version of its generator")
	}
	set, err = kustomize.NewRenderer[*Shop](g, nil).Render(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if objects, err = set.Annotated("op.test", nil); err != nil || len(objects) != 1 {
		t.Errorf("without a function: %d objects, %v", len(objects), err)
	}
}

func TestVersion(t *testing.T) {
	version := func(fsys fstest.MapFS, name string, o kustomize.Options) string {
		t.Helper()
		g, err := kustomize.NewGenerator(fsys, name, o)
		if err != nil {
			t.Fatal(err)
		}
		return g.Version()
	}
	all := func(more map[string]string) fstest.MapFS {
		fields := map[string]string{"b/kustomization.yaml": "resources: [../app]"}
		maps.Copy(fields, more)
		return files(app("", fields))
	}
	first := version(all(nil), "app", kustomize.Options{})
	if again := version(all(nil), "./app/", kustomize.Options{}); again != first {
		t.Errorf("the same files have the versions %s and %s", first, again)
	}
	seen := map[string]string{first: "the first"}
	for why, v := range map[string]string{
		"another kustomization": version(all(nil), "b", kustomize.Options{}),
		"options":               version(all(nil), "app", kustomize.Options{NamePrefix: true}),
		"another file":          version(all(map[string]string{"app/b": ""}), "app", kustomize.Options{}),
		"another content":       version(all(map[string]string{"app/a.yaml": configMap + "data: {a: b}\n"}), "app", kustomize.Options{}),
	} {
		if before := seen[v]; before != "" {
			t.Errorf("%s has the version of %s", why, before)
		}
		seen[v] = why
	}
}

// Files that change after NewGenerator change nothing: all is copied.
func TestCopied(t *testing.T) {
	fsys := files(app("", nil))
	g, err := kustomize.NewGenerator(fsys, "app", kustomize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := render(t, g, kustomize.Build{})
	copy(fsys["app/a.yaml"].Data, "garbage")
	delete(fsys, "app/kustomization.yaml")
	if diff := cmp.Diff(want, render(t, g, kustomize.Build{})); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}
