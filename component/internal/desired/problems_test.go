package desired_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component/internal/desired"
)

const foos = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Foo, plural: foos}
  versions: [{name: v1, served: true}, {name: v1beta1, served: true}, {name: v1alpha1, served: false}]
---
`

func TestProblems(t *testing.T) {
	annotated := func(annotations string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {` + annotations + `}}}`
	}
	for name, tc := range map[string]struct {
		why  string
		in   string
		want []string
	}{
		"adoption policy": {
			why:  "a value that is not known must not mean the default",
			in:   annotated(`op.test/adoption-policy: sometimes`),
			want: []string{`Deployment web: annotation op.test/adoption-policy is "sometimes"; it must be "never", "if-unowned" or "always"`},
		},
		"deprecated value where it never was one": {
			why:  "only the policies of update and deletion had it",
			in:   annotated(`op.test/reconcile-policy: default`),
			want: []string{`Deployment web: annotation op.test/reconcile-policy is "default"; it must be "on-object-change", "on-object-or-component-change" or "once"`},
		},
		"all policies": {
			why: "all problems are reported at once",
			in:  annotated(`op.test/update-policy: Replace, op.test/delete-policy: "no"`),
			want: []string{
				`Deployment web: annotation op.test/delete-policy is "no"; it must be "delete", "orphan", "orphan-on-apply" or "orphan-on-delete"`,
				`Deployment web: annotation op.test/update-policy is "Replace"; it must be "replace", "ssa-merge", "ssa-override" or "recreate"`,
			},
		},
		"orders": {
			why: "orders are 16-bit integers",
			in:  annotated(`op.test/apply-order: "32768", op.test/delete-order: "-32769", op.test/purge-order: "1.5"`),
			want: []string{
				`Deployment web: annotation op.test/apply-order is "32768"; it must be a whole number from -32768 to 32767`,
				`Deployment web: annotation op.test/delete-order is "-32769"; it must be a whole number from -32768 to 32767`,
				`Deployment web: annotation op.test/purge-order is "1.5"; it must be a whole number from -32768 to 32767`,
			},
		},
		"purge before apply": {
			why:  "the wave is over when the object is created",
			in:   annotated(`op.test/apply-order: "3", op.test/purge-order: "2"`),
			want: []string{`Deployment web: its op.test/purge-order 2 is below its op.test/apply-order 3; raise it`},
		},
		"hints": {
			why: "a hint that is not known would be missed by the one who gave it",
			in:  annotated(`op.test/status-hint: "has-ready-condition, ready,conditions, conditions=;,has-ready-condition=1"`),
			want: []string{
				`Deployment web: annotation op.test/status-hint has the hint "conditions"; hints are "has-observed-generation", "has-ready-condition" or "conditions=<type>;<type>"`,
				`Deployment web: annotation op.test/status-hint has the hint "conditions=;"; hints are "has-observed-generation", "has-ready-condition" or "conditions=<type>;<type>"`,
				`Deployment web: annotation op.test/status-hint has the hint "has-ready-condition=1"; hints are "has-observed-generation", "has-ready-condition" or "conditions=<type>;<type>"`,
				`Deployment web: annotation op.test/status-hint has the hint "ready"; hints are "has-observed-generation", "has-ready-condition" or "conditions=<type>;<type>"`,
			},
		},
		"implicit edges": {
			why: "a class that is not known would not be switched off",
			in:  annotated(`op.test/implicit-edges: "-types,accounts"`),
			want: []string{`Deployment web: annotation op.test/implicit-edges is "-types,accounts"; it must be "none", ` +
				`or a list of what to leave out: "-types", "-namespaces", "-accounts", "-backends"`},
		},
		"timeouts": {
			why:  "none that is meant would not count",
			in:   annotated(`op.test/timeout: "0s"`),
			want: []string{`Deployment web: annotation op.test/timeout is "0s"; it must be a positive time such as "90s" or "5m"`},
		},
		"misspelt annotation": {
			why: "unread, it would delete the object",
			in:  annotated(`op.test/delete-polcy: orphan, op.test/Apply-order: "1", op.test/unrelated: x, other.test/delete-polcy: x`),
			want: []string{
				`Deployment web: annotation op.test/Apply-order is not known; did you mean op.test/apply-order?`,
				`Deployment web: annotation op.test/delete-polcy is not known; did you mean op.test/delete-policy?`,
			},
		},
		"definitions stay": {
			why: "purging or recreating them deletes what they contain",
			in: `{apiVersion: v1, kind: Namespace, metadata: {name: a, annotations: {op.test/purge-order: "1"}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: b, annotations: {op.test/update-policy: recreate}}}`,
			want: []string{
				`Namespace a: op.test/purge-order is not possible for kind Namespace, because what it contains would be deleted with it; remove the annotation`,
				`Namespace b: op.test/update-policy "recreate" is not possible for kind Namespace, because what it contains would be deleted with it; ` +
					`set the annotation to "replace", "ssa-merge" or "ssa-override"`,
			},
		},
		"no identity": {
			why: "what cannot be named cannot be recorded",
			in: `{apiVersion: v1, kind: ConfigMap}
---
{apiVersion: v1, metadata: {name: a}}
---
{kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: 1}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}
---
{apiVersion: a/b/c, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a/b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ..}}
---
{apiVersion: v1, kind: List, items: [1, {kind: ConfigMap, apiVersion: v1, metadata: []}]}`,
			want: []string{
				`object 1 (ConfigMap): metadata is missing or not a map`,
				`object 10, item 1 of List is not an object`,
				`object 10, item 2 (ConfigMap): metadata is missing or not a map`,
				`object 2 (a): kind is missing`,
				`object 3 (ConfigMap a): apiVersion is missing`,
				`object 4 (ConfigMap): name is missing`,
				`object 5 (ConfigMap): name is 1, which is not a text; quote it`,
				`object 6 (ConfigMap): generateName is not possible, since the object must be found again; set name`,
				`object 7 (ConfigMap a): apiVersion "a/b/c" is not <group>/<version> or <version>`,
				`object 8 (ConfigMap a/b): name "a/b" may not contain '/'`,
				`object 9 (ConfigMap a): namespace ".." may not be '..'`,
			},
		},
		"labels and annotations": {
			why: "the API server refuses them with a message that does not name them",
			in: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {k: 1, "y": true}, annotations: {m: {a: b}, l: [], z: null, f: 1.5}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: [a], annotations: x}}`,
			want: []string{
				`ConfigMap a: annotation "f" is 1.5, which is not a text; quote it`,
				`ConfigMap a: annotation "l" is a list, which is not a text; quote it`,
				`ConfigMap a: annotation "m" is a map, which is not a text; quote it`,
				`ConfigMap a: annotation "z" is null, which is not a text; quote it`,
				`ConfigMap a: label "k" is 1, which is not a text; quote it`,
				`ConfigMap a: label "y" is true, which is not a text; quote it`,
				`ConfigMap b: the annotations are a text, which is not a map`,
				`ConfigMap b: the labels are a list, which is not a map`,
			},
		},
		"secrets": {
			why: "no value of a Secret is shown",
			in: `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: 123456}}
---
{apiVersion: v1, kind: Secret, metadata: {name: b}, stringData: hunter2}
---
{apiVersion: v1, kind: Secret, metadata: {name: c}, stringData: {a: b}, data: hunter2}`,
			want: []string{
				`Secret a: stringData "a" is not a text; quote it`,
				`Secret b: stringData is not a map`,
				`Secret c: data is not a map`,
			},
		},
		"quantities": {
			why: "values that the API server would refuse, or take hours to parse",
			in: `apiVersion: v1
kind: ResourceQuota
metadata: {name: a}
spec: {hard: {a: 1 core, b: "1e-999999999", c: [1], d: "` + strings.Repeat("9", 100) + `", e: ""}}`,
			want: []string{
				`ResourceQuota a: spec.hard.a is "1 core", which is not a quantity; write for example "500m" or "1Gi"`,
				`ResourceQuota a: spec.hard.b is "1e-999999999", which is not a quantity; write for example "500m" or "1Gi"`,
				`ResourceQuota a: spec.hard.c is a list, which is not a quantity; write for example "500m" or "1Gi"`,
				`ResourceQuota a: spec.hard.d is "` + strings.Repeat("9", 40) + `", which is not a quantity; write for example "500m" or "1Gi"`,
				`ResourceQuota a: spec.hard.e is "", which is not a quantity; write for example "500m" or "1Gi"`,
			},
		},
		"duplicates": {
			why: "two manifests of one object take turns for ever",
			in: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}
---
{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: a, namespace: shop}}
---
{apiVersion: example.org/v1, kind: Deployment, metadata: {name: a}}
---
` + strings.ReplaceAll(foos[1:len(foos)-len("---\n")], "Foo", "Deployment"),
			want: []string{
				`Deployment shop/a occurs twice: as object 1 of apps/v1 and as object 2 of apps/v1beta1; remove one`,
			},
		},
		"unknown kind": {
			why:  "the kind may be misspelt, or its definition missing",
			in:   `{apiVersion: example.org/v1, kind: Bar, metadata: {name: a}}`,
			want: []string{`Bar a: the target cluster does not serve kind Bar in example.org/v1, and no CustomResourceDefinition in the set defines it; check apiVersion and kind, or install the definition first`},
		},
		"unserved version": {
			why:  "the definition in the set is the newer truth",
			in:   foos[1:] + `{apiVersion: example.org/v1alpha1, kind: Foo, metadata: {name: a}}`,
			want: []string{`Foo a: version v1alpha1 is not served by CustomResourceDefinition foos.example.org, which defines the kind; use "v1" or "v1beta1"`},
		},
		"definitions": {
			why: "they cannot be understood",
			in: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {group: g, names: {kind: K}}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: b}, spec: {group: g, names: {kind: K}, versions: [{name: v1, served: false}]}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: c}, spec: 5}
---
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: d}, spec: {service: {name: x}}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: e}, spec: {group: g, names: {kind: L}, versions: [{name: v1, served: true}]}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: f}, spec: {group: g, names: {kind: L}, versions: [{name: v1, served: true}]}}`,
			want: []string{
				`APIService d: spec.group and spec.version must be set`,
				`CustomResourceDefinition a: no version of K is served; set served of one of spec.versions to true`,
				`CustomResourceDefinition b: no version of K is served; set served of one of spec.versions to true`,
				`CustomResourceDefinition c: spec.group and spec.names.kind must be set`,
				`CustomResourceDefinition e and CustomResourceDefinition f define the same kind L.g; remove one`,
			},
		},
		"orders against edges": {
			why: "the object would wait for what comes later",
			in: foos[1:] + `{apiVersion: example.org/v1, kind: Foo, metadata: {name: a, annotations: {op.test/apply-order: "-1", op.test/delete-order: "1"}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop, annotations: {op.test/apply-order: "-1", op.test/delete-order: "5"}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, annotations: {op.test/depends-on: ConfigMap/c}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {op.test/apply-order: "2"}}}`,
			want: []string{
				`ConfigMap shop/b: its op.test/apply-order 0 is below 2 of ConfigMap shop/c, on which it depends; raise it`,
				`Foo shop/a: its op.test/apply-order -1 is below 0 of CustomResourceDefinition foos.example.org, which defines its kind; raise it`,
				`Foo shop/a: its op.test/delete-order 1 is above 0 of CustomResourceDefinition foos.example.org, which defines its kind; lower it`,
			},
		},
		"references": {
			why: "an edge to nothing would be no edge",
			in: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {
				op.test/depends-on: "ConfigMap/a, ConfigMap/x, /ConfigMap/shop/x, apps/ConfigMap/a, Twin/t, /ConfigMap/other/b"}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
---
{apiVersion: apps/v1, kind: Twin, metadata: {name: t}}
---
{apiVersion: batch/v1, kind: Twin, metadata: {name: t}}`,
			want: []string{
				`ConfigMap shop/a: annotation op.test/depends-on names "/ConfigMap/other/b", which is not in the set; correct it, or add the object`,
				`ConfigMap shop/a: annotation op.test/depends-on names "/ConfigMap/shop/x", which is not in the set; correct it, or add the object`,
				`ConfigMap shop/a: annotation op.test/depends-on names "ConfigMap/x", which is not in the set; correct it, or add the object`,
				`ConfigMap shop/a: annotation op.test/depends-on names "Twin/t", which is ambiguous; use "apps/Twin/shop/t" or "batch/Twin/shop/t"`,
				`ConfigMap shop/a: annotation op.test/depends-on names "apps/ConfigMap/a"; it must be <group>/<Kind>/<namespace>/<name>, or <Kind>/<name> for an object in the same namespace`,
				`ConfigMap shop/a: annotation op.test/depends-on names the object itself; remove it`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := desired.Normalize(objects(t, tc.in), options())
			if err == nil {
				t.Fatalf("%s: no error", tc.why)
			}
			if got != nil {
				t.Errorf("there are %d objects beside the error", len(got))
			}
			if diff := cmp.Diff(tc.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

// broken panics when it is encoded.
type broken struct{ *unstructured.Unstructured }

func TestProblemsOfGoObjects(t *testing.T) {
	cycle := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	cycle["cycle"] = cycle
	for name, tc := range map[string]struct {
		why  string
		in   client.Object
		want string
	}{
		"nil":           {"a renderer that forgot a return value", nil, "object 1 is nil; return no object instead"},
		"nil pointer":   {"as above, less visible", (*corev1.ConfigMap)(nil), "object 1 is nil; return no object instead"},
		"empty":         {"as above", &unstructured.Unstructured{}, "object 1: metadata is missing or not a map"},
		"not in scheme": {"its group is not in the scheme", &apiextensionsv1.CustomResourceDefinition{}, "object 1 (*v1.CustomResourceDefinition): the scheme does not know *v1.CustomResourceDefinition; add its API group to the scheme"},
		"several kinds": {"options are registered in each group", &metav1.PartialObjectMetadata{}, "object 1 (*v1.PartialObjectMetadata): the scheme does not know *v1.PartialObjectMetadata; add its API group to the scheme"},
		"no number":     {"JSON has no infinity", &unstructured.Unstructured{Object: map[string]any{"x": math.Inf(1)}}, "object 1 (*unstructured.Unstructured): cannot be written as JSON: json: unsupported value: +Inf"},
		"no JSON":       {"JSON has no channels", &unstructured.Unstructured{Object: map[string]any{"x": make(chan int)}}, "object 1 (*unstructured.Unstructured): cannot be written as JSON: json: unsupported type: chan int"},
		"a cycle":       {"it has no end", &unstructured.Unstructured{Object: cycle}, "object 1 (*unstructured.Unstructured): cannot be written as JSON: json: unsupported value: encountered a cycle via map[string]interface {}"},
		"binary":        {"it would be replaced silently", &corev1.ConfigMap{Data: map[string]string{"a": "\xff"}}, "object 1 (*v1.ConfigMap): contains text that is not valid UTF-8; encode binary data as base64"},
		"a panic":       {"a renderer's own type", broken{}, "object 1 (desired_test.broken): desired_test.broken panicked in MarshalJSON: runtime error: invalid memory address or nil pointer dereference; the operator's log has the stack"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := desired.Normalize([]client.Object{tc.in}, options())
			if diff := cmp.Diff(tc.want, fmt.Sprint(err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

// TestReplacementCharacter proves that only what is not valid is refused, not what looks like it.
func TestReplacementCharacter(t *testing.T) {
	in := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"a": "\ufffd", "b": `\ufffd`, "c": `\\ufffd`}}
	if _, err := desired.Normalize([]client.Object{in}, options()); err != nil {
		t.Error(err)
	}
}

func TestNoNamespace(t *testing.T) {
	o := options()
	o.Namespace = ""
	_, err := desired.Normalize(objects(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`), o)
	if diff := cmp.Diff("ConfigMap a has no namespace, and the component has none for it", fmt.Sprint(err)); diff != "" {
		t.Errorf("a placement without namespace (-want +got):\n%s", diff)
	}
}
