package desired_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
)

// options are those of the operator op.test for the component shop/web.
func options() desired.Options {
	return desired.Options{
		Name: "op.test", OwnerID: "c1/shop/web", OwnerUID: "u1", Generation: 7, Namespace: "shop",
		Policies: api.Policies{
			AdoptionPolicy: api.AdoptionPolicyIfUnowned, ReconcilePolicy: api.ReconcilePolicyOnObjectChange,
			UpdatePolicy: api.UpdatePolicyReplace, DeletePolicy: api.DeletePolicyDelete,
		},
		Scope: scope, Scheme: clientgoscheme.Scheme,
	}
}

// scope knows the kinds that an API server has from the start.
func scope(k schema.GroupKind, _ string) (namespaced, known bool) {
	switch k.Kind {
	case "Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "APIService", "StorageClass",
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "PersistentVolume", "PriorityClass", "IngressClass", "RuntimeClass":
		return false, true
	}
	return true, !strings.Contains(k.Group, ".") || strings.HasSuffix(k.Group, ".k8s.io")
}

// objects reads YAML documents.
func objects(t testing.TB, text string) []client.Object {
	t.Helper()
	var out []client.Object
	for doc := range strings.SplitSeq(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		out = append(out, u)
	}
	return out
}

func normalize(t testing.TB, text string) []desired.Object {
	t.Helper()
	got, err := desired.Normalize(objects(t, text), options())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// rendered returns a manifest without what all manifests have: the marks of the owner.
func rendered(t testing.TB, o desired.Object) map[string]any {
	t.Helper()
	u := o.Manifest.DeepCopy()
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	if labels["op.test/owner-id"] != desired.OwnerLabel("c1/shop/web") {
		t.Errorf("%s has the label %q", o.Item.Key(), labels["op.test/owner-id"])
	}
	if annotations["op.test/owner-id"] != "c1/shop/web@u1 "+o.Item.Key() {
		t.Errorf("%s has the owner %q", o.Item.Key(), annotations["op.test/owner-id"])
	}
	if annotations["op.test/digest"] != o.Item.Digest || o.Item.Digest == "" {
		t.Errorf("%s has the digest %q, its item %q", o.Item.Key(), annotations["op.test/digest"], o.Item.Digest)
	}
	for _, key := range []string{"op.test/owner-id", "op.test/digest"} {
		delete(labels, key)
		delete(annotations, key)
	}
	if len(labels) == 0 {
		labels = nil
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	return u.Object
}

func TestManifests(t *testing.T) {
	for name, tc := range map[string]struct {
		why      string
		in, want string
	}{
		"default namespace": {
			why:  "an object without a namespace belongs to the component's",
			in:   `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
			want: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}`,
		},
		"explicit namespace": {
			why:  "the placement only fills gaps",
			in:   `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}`,
			want: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}`,
		},
		"cluster-scoped": {
			why:  "the API server refuses a namespace there",
			in:   `{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: other}}`,
			want: `{apiVersion: v1, kind: Namespace, metadata: {name: a}}`,
		},
		"unknown fields": {
			why:  "fields newer than the linked API types must reach the server",
			in:   `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {fromTheFuture: {x: [1, 2.5, null, true]}}}`,
			want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}, spec: {fromTheFuture: {x: [1, 2.5, null, true]}}}`,
		},
		"what the server writes": {
			why: "manifests copied from a cluster carry it, and applying it fails or takes ownership of it",
			in: `{apiVersion: v1, kind: Service, status: {loadBalancer: {}}, metadata: {name: a, uid: u, resourceVersion: "1", generation: 3,
				creationTimestamp: null, deletionTimestamp: null, selfLink: /x, managedFields: [], labels: null, finalizers: [x]}}`,
			want: `{apiVersion: v1, kind: Service, metadata: {name: a, namespace: shop, finalizers: [x]}}`,
		},
		"null times in templates": {
			why: "old generators write them, and the API server drops them",
			in: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a},
				spec: {template: {metadata: {creationTimestamp: null, labels: {a: b}}}, other: {creationTimestamp: null}}}`,
			want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop},
				spec: {template: {metadata: {labels: {a: b}}}, other: {creationTimestamp: null}}}`,
		},
		"stringData": {
			why:  "foreign edits of data would not be noticed, because nobody would own data",
			in:   `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: b2xk, b: b2xk}, stringData: {b: new, c: ""}}`,
			want: `{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: shop}, data: {a: b2xk, b: bmV3, c: ""}}`,
		},
		"stringData elsewhere": {
			why:  "only the Secret of the core group has this field",
			in:   `{apiVersion: apps/v1, kind: Secret, metadata: {name: a}, stringData: {b: new}}`,
			want: `{apiVersion: apps/v1, kind: Secret, metadata: {name: a, namespace: shop}, stringData: {b: new}}`,
		},
		"annotations": {
			why: "the operator's own do not reach the server, those of another operator have no effect and stay",
			in: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {op.test/owner-id: copied, app: a}, annotations: {
				op.test/apply-order: "1", op.test/digest: copied, op.test/owner-id: copied, op.test/purge-order: "2", op.test/delete-order: "3",
				op.test/adoption-policy: never, op.test/update-policy: recreate, op.test/reconcile-policy: once, op.test/delete-policy: orphan,
				op.test/status-hint: has-ready-condition, op.test/depends-on: "", op.test/implicit-edges: none,
				op.test/something: stays, other.test/apply-order: "100000", note: stays}}}`,
			want: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {app: a}, annotations: {
				op.test/something: stays, op.test/status-hint: has-ready-condition, other.test/apply-order: "100000", note: stays}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := normalize(t, tc.in)
			want := objects(t, tc.want)[0].(*unstructured.Unstructured).Object
			if diff := cmp.Diff(jsonOf(t, want), jsonOf(t, rendered(t, got[0]))); diff != "" {
				t.Errorf("%s: manifest (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

// jsonOf returns a value as JSON, where 1 and 1.0 are the same.
func jsonOf(t testing.TB, value any) string {
	t.Helper()
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestInputsAreNotModified(t *testing.T) {
	in := objects(t, `{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {op.test/apply-order: "1"}}, stringData: {a: b}}`)[0]
	before := in.DeepCopyObject()
	got, err := desired.Normalize([]client.Object{in}, options())
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(got[0].Manifest.Object, "changed", "data", "a"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, in.(any)); diff != "" {
		t.Errorf("what the renderer returned was modified (-before +after):\n%s", diff)
	}
}

func TestGoValues(t *testing.T) {
	in := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "labels": map[string]string{"a": "b"}},
		"n": 1, "f": float32(2), "u": uint8(3), "list": []string{"x"}, "struct": struct{ A int }{4},
	}}
	got, err := desired.Normalize([]client.Object{in}, options())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "namespace": "shop", "labels": map[string]any{"a": "b"}},
		"n":        int64(1), "f": int64(2), "u": int64(3), "list": []any{"x"}, "struct": map[string]any{"A": int64(4)},
	}
	if diff := cmp.Diff(want, rendered(t, got[0])); diff != "" {
		t.Errorf("values as Go programs write them must become those of JSON (-want +got):\n%s", diff)
	}
}

func TestTypedObject(t *testing.T) {
	o := options()
	o.Generation = 0
	got, err := desired.Normalize([]client.Object{&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"op.test/apply-order": "5"}},
		Data:       map[string][]byte{"k": {0xff}}, StringData: map[string]string{"s": "v"},
	}}, o)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"k": "/w==", "s": "dg=="},
		"metadata": map[string]any{"name": "a", "namespace": "shop"},
	}
	if diff := cmp.Diff(want, rendered(t, got[0])); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	if got[0].Item.ApplyOrder != 5 {
		t.Errorf("apply order is %d, want that of the annotation", got[0].Item.ApplyOrder)
	}
}

func TestLists(t *testing.T) {
	got := normalize(t, `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- apiVersion: v1
  kind: List
  items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
- {apiVersion: v1, kind: SecretList, items: [{metadata: {name: c}}]}
- {apiVersion: v1, kind: List}
- {apiVersion: apps/v1, kind: AllowList, metadata: {name: d}, items: [1]}
`)
	var keys []string
	for _, o := range got {
		keys = append(keys, o.Item.Key())
	}
	want := []string{"/ConfigMap/shop/a", "/ConfigMap/shop/b", "/Secret/shop/c", "apps/AllowList/shop/d"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("what lists hold must be in the set, and an object whose kind ends in List is no list (-want +got):\n%s", diff)
	}
}

func TestQuantities(t *testing.T) {
	for name, tc := range map[string]struct {
		why      string
		in, want string
	}{
		"containers": {
			why: "in another notation other appliers would take the field",
			in: `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {overhead: {cpu: 1.50},
				containers: [{resources: {requests: {cpu: "0.5", memory: 1024Mi}, limits: {cpu: 2}}, env: [{valueFrom: {resourceFieldRef: {divisor: 1000m}}}]}],
				initContainers: [{resources: {limits: {memory: "1000000"}}}], volumes: [{emptyDir: {sizeLimit: 2048Mi}}]}}}}`,
			want: `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {overhead: {cpu: 1500m},
				containers: [{resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: "2"}}, env: [{valueFrom: {resourceFieldRef: {divisor: "1"}}}]}],
				initContainers: [{resources: {limits: {memory: 1M}}}], volumes: [{emptyDir: {sizeLimit: 2Gi}}]}}}}`,
		},
		"cron job": {
			why:  "its template is deeper",
			in:   `{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{resources: {limits: {cpu: 0.1}}}]}}}}}}`,
			want: `{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{resources: {limits: {cpu: 100m}}}]}}}}}}`,
		},
		"pod": {
			why:  "it has no template",
			in:   `{apiVersion: v1, kind: Pod, spec: {containers: [{resources: {limits: {cpu: 0.1}}}]}}`,
			want: `{apiVersion: v1, kind: Pod, spec: {containers: [{resources: {limits: {cpu: 100m}}}]}}`,
		},
		"claims": {
			why:  "storage is a quantity in claims and in their templates",
			in:   `{apiVersion: apps/v1, kind: StatefulSet, spec: {volumeClaimTemplates: [{spec: {resources: {requests: {storage: 1024Gi}}}}]}}`,
			want: `{apiVersion: apps/v1, kind: StatefulSet, spec: {volumeClaimTemplates: [{spec: {resources: {requests: {storage: 1Ti}}}}]}}`,
		},
		"claim": {
			why:  "as above",
			in:   `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 1024Gi}}}}`,
			want: `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 1Ti}}}}`,
		},
		"autoscaler": {
			why:  "averages are quantities, utilization is a number",
			in:   `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {metrics: [{resource: {target: {averageValue: 0.5, averageUtilization: 80}}}]}}`,
			want: `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {metrics: [{resource: {target: {averageValue: 500m, averageUtilization: 80}}}]}}`,
		},
		"quota": {
			why:  "as above",
			in:   `{apiVersion: v1, kind: ResourceQuota, spec: {hard: {pods: 10, requests.cpu: "1.5"}}}`,
			want: `{apiVersion: v1, kind: ResourceQuota, spec: {hard: {pods: "10", requests.cpu: 1500m}}}`,
		},
		"limits": {
			why:  "as above",
			in:   `{apiVersion: v1, kind: LimitRange, spec: {limits: [{type: Container, max: {cpu: 0.5}, default: {cpu: 0.5}}]}}`,
			want: `{apiVersion: v1, kind: LimitRange, spec: {limits: [{type: Container, max: {cpu: 500m}, default: {cpu: 500m}}]}}`,
		},
		"no quantity": {
			why:  "what another kind has at the same path is left alone",
			in:   `{apiVersion: v1, kind: ConfigMap, spec: {resources: {requests: {storage: 1024Gi}}, hard: {pods: 10}}}`,
			want: `{apiVersion: v1, kind: ConfigMap, spec: {resources: {requests: {storage: 1024Gi}}, hard: {pods: 10}}}`,
		},
		"null": {
			why:  "the API server drops it",
			in:   `{apiVersion: v1, kind: ResourceQuota, spec: {hard: {pods: null}}}`,
			want: `{apiVersion: v1, kind: ResourceQuota, spec: {hard: {pods: null}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			named := func(text string) string {
				return strings.Replace(text, "spec:", "metadata: {name: a, namespace: shop}, spec:", 1)
			}
			got := normalize(t, named(tc.in))
			want := objects(t, named(tc.want))[0].(*unstructured.Unstructured).Object
			if diff := cmp.Diff(jsonOf(t, want), jsonOf(t, rendered(t, got[0]))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}
