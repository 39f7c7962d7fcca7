package kustomize_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/kustomize"
)

// kustomizations are those in testdata, with what each is about.
func kustomizations() map[string]string {
	return map[string]string{
		"shop/base":  "files with several objects, a list and JSON",
		"shop/prod":  "overlay: namespace, namePrefix, nameSuffix, labels, commonAnnotations, images, replicas",
		"shop/parts": "components",
		"generated":  "configMapGenerator, secretGenerator, generatorOptions, behaviors",
		"patched":    "patches: strategic and JSON 6902, in files and inline, with targets",
		"legacy":     "bases, commonLabels, imageTags, patchesStrategicMerge, patchesJson6902, vars",
		"copied":     "replacements",
		"plugged":    "generators, transformers and validators that are built in",
		"custom":     "crds, configurations, objects that are left out",
		"both":       "a base twice, sortOptions, buildMetadata",
	}
}

// onDisk is kustomize's own result for a folder on the disk.
func onDisk(t *testing.T, folder string) []map[string]any {
	t.Helper()
	o := krusty.MakeDefaultOptions()
	o.Reorder = krusty.ReorderOptionUnspecified // as the command does by default
	built, err := krusty.MakeKustomizer(o).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		if text, err = yaml.YAMLToJSON(text); err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		out = append(out, u.Object)
	}
	return out
}

func contents(t *testing.T, set component.Set) []map[string]any {
	t.Helper()
	objects, err := set.Annotated("op.test", nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, o := range objects {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("%T", o)
		}
		out = append(out, u.Object)
	}
	return out
}

func generator(t *testing.T, folder string, o kustomize.Options) *kustomize.Generator {
	t.Helper()
	g, err := kustomize.NewGenerator(os.DirFS("testdata"), folder, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func render(t *testing.T, g *kustomize.Generator, b kustomize.Build) []map[string]any {
	t.Helper()
	set, err := g.Render(b)
	if err != nil {
		t.Fatal(err)
	}
	return contents(t, set)
}

func TestSameAsKustomize(t *testing.T) {
	for folder, about := range kustomizations() {
		t.Run(folder, func(t *testing.T) {
			want := onDisk(t, filepath.Join("testdata", folder))
			if len(want) == 0 {
				t.Fatalf("%s: nothing is built", about)
			}
			got := render(t, generator(t, folder, kustomize.Options{}), kustomize.Build{})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", about, diff)
			}
		})
	}
}

// overlay returns an overlay that changes something in all kustomizations.
func overlay() types.Kustomization {
	return types.Kustomization{
		Namespace:          "over",
		NamePrefix:         "over-",
		Labels:             []types.Label{{Pairs: map[string]string{"over": "yes"}}},
		CommonAnnotations:  map[string]string{"over": "yes"},
		Images:             []types.Image{{Name: "registry.example.org/shop/server", NewTag: "over"}},
		ConfigMapGenerator: []types.ConfigMapArgs{{GeneratorArgs: types.GeneratorArgs{Name: "over", KvPairSources: types.KvPairSources{LiteralSources: []string{"a=b"}}}}},
		Patches: []types.Patch{{
			Patch:  `[{"op": "add", "path": "/metadata/labels/patched", "value": "https://example.org"}]`,
			Target: &types.Selector{LabelSelector: "app=server"},
		}},
		Transformers: []string{"apiVersion: builtin\nkind: SuffixTransformer\nmetadata: {name: x}\nsuffix: -end\nfieldSpecs: [{path: metadata/name}]\n"},
	}
}

// An overlay of a component is what an overlay in a file on the disk is.
func TestSameOverlayAsKustomize(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "trimtab-files"), os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	for folder, about := range kustomizations() {
		t.Run(folder, func(t *testing.T) {
			g := generator(t, folder, kustomize.Options{})
			k := overlay()
			if folder == "both" { // only the topmost kustomization counts for kustomize; see TestTopmost
				k.BuildMetadata, k.SortOptions = []string{types.ManagedByLabelOption}, &types.SortOptions{Order: types.FIFOSortOrder}
			}
			got := render(t, g, kustomize.Build{Overlay: k})
			k.Resources = []string{"../trimtab-files/" + folder}
			text, err := yaml.Marshal(k)
			if err != nil {
				t.Fatal(err)
			}
			over := filepath.Join(root, "over")
			if err := os.MkdirAll(over, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(over, "kustomization.yaml"), text, 0o600); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(onDisk(t, over), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", about, diff)
			}
		})
	}
}

// Fields that only the topmost kustomization can have are not lost under an overlay.
func TestTopmost(t *testing.T) {
	g := generator(t, "both", kustomize.Options{})
	want := render(t, g, kustomize.Build{})
	got := render(t, g, kustomize.Build{Overlay: types.Kustomization{CommonAnnotations: map[string]string{"a": "b"}}})
	kinds := func(list []map[string]any) (out []string) {
		for _, o := range list {
			u := unstructured.Unstructured{Object: o}
			out = append(out, u.GetKind()+" "+u.GetName()+" "+u.GetLabels()["app.kubernetes.io/managed-by"])
		}
		return out
	}
	if diff := cmp.Diff(kinds(want), kinds(got)); diff != "" {
		t.Errorf("with an overlay (-want +got):\n%s", diff)
	}
}

// A generator gives the same to all goroutines, and neither its files nor the overlay change.
func TestConcurrency(t *testing.T) {
	openapi.ResetOpenAPI() // as in a new process
	generators := map[string]*kustomize.Generator{}
	for folder := range kustomizations() {
		generators[folder] = generator(t, folder, kustomize.Options{})
	}
	k := overlay()
	first := map[string]string{}
	var lock sync.Mutex
	var all sync.WaitGroup
	for range 3 {
		for folder, g := range generators {
			for _, b := range []kustomize.Build{{}, {Overlay: k}} {
				all.Go(func() {
					set, err := g.Render(b)
					if err != nil {
						t.Error(err)
						return
					}
					text, err := json.Marshal(contents(t, set))
					if err != nil {
						t.Error(err)
					}
					lock.Lock()
					defer lock.Unlock()
					key := folder + b.Overlay.Namespace
					if before := first[key]; before != "" && before != string(text) {
						t.Errorf("%s: other objects at another time (-want +got):\n%s", folder, cmp.Diff(before, string(text)))
					}
					first[key] = string(text)
				})
			}
		}
	}
	all.Wait()
	if !reflect.DeepEqual(overlay(), k) {
		t.Errorf("the overlay was changed: %+v", k)
	}
	for folder, g := range generators {
		if diff := cmp.Diff(generator(t, folder, kustomize.Options{}).Version(), g.Version()); diff != "" {
			t.Errorf("%s: version (-want +got):\n%s", folder, diff)
		}
	}
}
