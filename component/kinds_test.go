package component_test

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/testenv"
)

// definition is the CustomResourceDefinition of a namespaced kind with any spec. Its objects are not ready
// before their status says so: kstatus compares the observed generation, which is -1 at first.
func definition(kind schema.GroupKind) *unstructured.Unstructured {
	singular := strings.ToLower(kind.Kind)
	version := map[string]any{
		"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
		"schema": map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			"properties": map[string]any{
				"spec": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				"status": map[string]any{
					"type": "object", "default": map[string]any{"observedGeneration": int64(-1)},
					"properties": map[string]any{"observedGeneration": map[string]any{"type": "integer"}},
				},
			},
		}},
	}
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", singular+"s."+kind.Group, map[string]any{"spec": map[string]any{
		"group": kind.Group, "scope": "Namespaced", "versions": []any{version},
		"names": map[string]any{"kind": kind.Kind, "plural": singular + "s", "singular": singular, "listKind": kind.Kind + "List"},
	}})
}

// plain is a definition whose objects are ready as soon as they exist.
func plain(kind schema.GroupKind) *unstructured.Unstructured {
	crd := definition(kind)
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	version, _ := versions[0].(map[string]any)
	unstructured.RemoveNestedField(version, "schema", "openAPIV3Schema", "properties", "status")
	crd.Object["spec"].(map[string]any)["versions"] = []any{version}
	return crd
}

// object is an untyped object.
func object(apiVersion, kind, name string, content map[string]any, annotations ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(u.Object, content)
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(name)
	annotate(u, annotations...)
	return u
}

func annotate(obj client.Object, annotations ...string) {
	if len(annotations) == 0 {
		return
	}
	all := map[string]string{}
	maps.Copy(all, obj.GetAnnotations())
	for i := 0; i < len(annotations); i += 2 {
		all[annotations[i]] = annotations[i+1]
	}
	obj.SetAnnotations(all)
}

// tasks is a kind whose objects nobody reconciles but the test.
func tasks() schema.GroupKind { return schema.GroupKind{Group: "tests.trimtab.dev", Kind: "Task"} }

// task is a dependent that becomes ready when the test says so. The bench must have been made withTasks.
func task(name string, annotations ...string) *unstructured.Unstructured {
	return object(tasks().Group+"/v1", tasks().Kind, name, nil, annotations...)
}

// withTasks installs the kind of tasks.
func (b *bench) withTasks() *bench {
	b.t.Helper()
	testenv.Install(b.t, b.cfg, definition(tasks()))
	return b
}

// task is a task as others see it.
func (b *bench) task(name string) *unstructured.Unstructured { return b.in(task(name)) }

// in puts an object into the namespace of the bench.
func (b *bench) in(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetNamespace(b.namespace)
	return u
}

// finish waits for a task and makes it ready, or unready.
func (b *bench) finish(name string, ready bool) {
	b.t.Helper()
	d := testenv.Wait(b.t, b.admin, b.task(name), "task "+name, func(*unstructured.Unstructured) bool { return true })
	observed := int64(-1)
	if ready {
		observed = d.GetGeneration()
	}
	body := fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, observed)
	if err := b.admin.Status().Patch(b.t.Context(), d, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		b.t.Fatal(err)
	}
}

// exists waits until an object exists, and returns it.
func (b *bench) exists(u *unstructured.Unstructured) *unstructured.Unstructured {
	b.t.Helper()
	return testenv.Wait(b.t, b.admin, u, u.GetKind()+" "+u.GetName(), func(*unstructured.Unstructured) bool { return true })
}
