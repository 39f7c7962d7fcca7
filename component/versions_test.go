package component_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestOtherVersion: a dependent is rendered in another version of its kind. It stays the same object.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	crd := componenttest.CRD("Versioned", apiextensionsv1.NamespaceScoped)
	beta := *crd.Spec.Versions[0].DeepCopy()
	beta.Name, beta.Storage = "v1beta1", false
	crd.Spec.Versions = append(crd.Spec.Versions, beta)
	testenv.Install(t, b.cfg, crd)
	in := func(version string) client.Object {
		o := componenttest.New("Versioned", "", "one")
		o.SetAPIVersion(componenttest.Group + "/" + version)
		o.Object["spec"] = map[string]any{"size": int64(1)}
		return o
	}
	live := func() client.Object {
		t.Helper()
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(componenttest.Kind("Versioned"))
		if err := b.admin.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "one"}, o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	var uid types.UID
	// expect waits until the object is applied in this version, by one write and as the same object. reads are those of the API server.
	expect := func(t *testing.T, version string, reads ...string) {
		t.Helper()
		now := b.ready().Status.Inventory
		if live().GetUID() != uid {
			t.Error("the object was created again")
		}
		if len(now) != 1 || now[0].Version != version {
			t.Errorf("inventory %+v, want one item of version %s", now, version)
		}
		if diff := cmp.Diff(counts{Dependents: 1, Component: 1, Reads: reads}, b.sent()); diff != "" {
			t.Errorf("requests (-want +got):\n%s\n%s", diff, b.requests)
		}
	}
	t.Run("B-38 v1beta1 to v1, also when v1beta1 is not served any more", func(t *testing.T) {
		b.create(in("v1beta1"))
		b.ready()
		uid = live().GetUID()
		b.requests.Reset()
		b.change(in("v1"))
		expect(t, "v1")
		b.requests.Reset()
		b.change(in("v1beta1"))
		expect(t, "v1beta1")
		b.stop() // clients learn about versions when they start
		crd.Spec.Versions[1].Served = false
		testenv.Install(t, b.cfg, crd)
		b.requests.Reset()
		b.change(in("v1"))
		b.start()
		expect(t, "v1", "get bundles "+b.namespace+"/a 200") // a new process makes sure that its cache is not old
		b.delete()
		b.gone()
		gone := &unstructured.Unstructured{}
		gone.SetGroupVersionKind(componenttest.Kind("Versioned"))
		gone.SetNamespace(b.namespace)
		gone.SetName("one")
		testenv.Gone(t, b.admin, gone, "deleted with its component")
	})
}

// TestRemovedVersion: managedFields name a version that the definition of a dependent does not have any more. The API
// server refuses every apply then.
func TestRemovedVersion(t *testing.T) {
	t.Parallel()
	b := prepareBench(t)
	kind := schema.GroupVersionKind{Group: b.baz().Group, Version: "v1", Kind: b.baz().Kind}
	crd := plain(b.baz())
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	alpha, beta := runtime.DeepCopyJSON(versions[0].(map[string]any)), runtime.DeepCopyJSON(versions[0].(map[string]any))
	alpha["name"], alpha["storage"], beta["name"], beta["storage"] = "v1alpha1", false, "v1beta1", false
	serve := func(all ...any) {
		t.Helper()
		crd.Object["spec"].(map[string]any)["versions"] = all
		testenv.Install(t, b.cfg, crd.DeepCopy())
	}
	in := func(version, color string, size int64) client.Object {
		return object(kind.Group+"/"+version, kind.Kind, "one", map[string]any{"spec": map[string]any{"color": color, "size": size}})
	}
	serve(versions[0], alpha, beta)
	b.start()
	b.create(in("v1beta1", "red", 1))
	b.ready()
	before := b.exists(b.in(b.bazOf("one")))
	theirs := b.in(object(kind.Group+"/v1alpha1", kind.Kind, "one", nil))
	b.merge("them", theirs, `{"spec":{"theirs":"x"}}`)
	b.stop() // clients learn about versions when they start
	serve(versions[0])
	b.requests.Reset()
	b.start()
	b.change(object(kind.GroupVersion().String(), kind.Kind, "one", map[string]any{"spec": map[string]any{"color": "blue"}}))
	b.ready()
	now := b.exists(b.in(b.bazOf("one")))
	if diff := cmp.Diff(map[string]any{"color": "blue", "theirs": "x"}, now.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if now.GetUID() != before.GetUID() {
		t.Error("the object was created again")
	}
	managers := map[string]string{}
	for _, e := range now.GetManagedFields() {
		managers[e.Manager] = e.APIVersion
	}
	if diff := cmp.Diff(map[string]string{b.operator: kind.GroupVersion().String(), "them": kind.GroupVersion().String()}, managers); diff != "" {
		t.Errorf("versions by manager (-want +got):\n%s", diff)
	}
	b.requests.Reset()
	b.merge("them", b.in(b.bazOf("one")), `{"spec":{"color":"green"}}`)
	testenv.Wait(t, b.admin, b.in(b.bazOf("one")), "corrected", func(u *unstructured.Unstructured) bool {
		color, _, _ := unstructured.NestedString(u.Object, "spec", "color")
		return color == "blue"
	})
	b.delete()
	b.gone()
}
