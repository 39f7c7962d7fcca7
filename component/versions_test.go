package component_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	// change renders another version and expects one write and no other object.
	change := func(t *testing.T, version string) {
		t.Helper()
		before := live()
		b.requests.Reset()
		b.change(in(version))
		now := b.ready().Status.Inventory
		if live().GetUID() != before.GetUID() {
			t.Error("the object was created again")
		}
		if len(now) != 1 || now[0].Version != version {
			t.Errorf("inventory %+v, want one item of version %s", now, version)
		}
		if diff := cmp.Diff(counts{Dependents: 1, Component: 1}, b.sent()); diff != "" {
			t.Errorf("requests (-want +got):\n%s\n%s", diff, b.requests)
		}
	}
	t.Run("B-38 v1beta1 to v1, also when v1beta1 is not served any more", func(t *testing.T) {
		b.create(in("v1beta1"))
		b.ready()
		change(t, "v1")
		change(t, "v1beta1")
		b.stop() // clients learn about versions when they start
		crd.Spec.Versions[1].Served = false
		testenv.Install(t, b.cfg, crd)
		b.start()
		change(t, "v1")
		b.delete()
		b.gone()
		gone := &unstructured.Unstructured{}
		gone.SetGroupVersionKind(componenttest.Kind("Versioned"))
		gone.SetNamespace(b.namespace)
		gone.SetName("one")
		testenv.Gone(t, b.admin, gone, "deleted with its component")
	})
}
