package component_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// baz is a kind of the test's own.
func (b *bench) baz() schema.GroupKind {
	return schema.GroupKind{Group: b.namespace + ".example.org", Kind: "Baz"}
}

func (b *bench) bazOf(name string, annotations ...string) *unstructured.Unstructured {
	return object(b.baz().Group+"/v1", b.baz().Kind, name, nil, annotations...)
}

// crd is the definition of baz, as the server has it.
func (b *bench) crd() *unstructured.Unstructured {
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "bazs."+b.baz().Group, nil)
}

// put creates an object of others in the namespace of the bench.
func (b *bench) put(u *unstructured.Unstructured) *unstructured.Unstructured {
	b.t.Helper()
	if err := b.admin.Create(b.t.Context(), b.in(u)); err != nil {
		b.t.Fatal(err)
	}
	return u
}

// drop deletes an object as a user would.
func (b *bench) drop(obj client.Object) {
	b.t.Helper()
	if err := b.admin.Delete(b.t.Context(), obj); err != nil {
		b.t.Fatal(err)
	}
}

// blocked waits until the component "a" says that its deletion, or a part of it, is blocked.
func (b *bench) blocked(state string, parts ...string) *bundle.Bundle {
	b.t.Helper()
	return b.await(state+" DeletionBlocked: "+strings.Join(parts, ", "), func(o *bundle.Bundle) bool {
		reason := ""
		for _, c := range o.Status.Conditions {
			if c.Type == api.ConditionReady {
				reason = c.Reason
			}
		}
		return o.Status.State == state && reason == "DeletionBlocked" && containsAll(o.Status.Message, parts)
	})
}

// untouched fails the test unless the operator wrote nothing but the component's status.
func (b *bench) untouched() {
	b.t.Helper()
	if sent := b.sent(); sent.Dependents != 0 {
		b.t.Errorf("%v\n%v", sent, b.requests)
	}
}

func TestForeignInstances(t *testing.T) {
	t.Parallel()
	t.Run("004-62 deletion is blocked", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		b.tune = released
		b.start()
		b.create(plain(b.baz()), configMap("one", "1"), b.bazOf("ours"))
		b.ready()
		foreign := b.put(b.bazOf("theirs"))
		one, crd := b.live("one").ResourceVersion, b.exists(b.crd()).GetResourceVersion()
		b.requests.Reset()
		b.delete()
		b.blocked(component.StateDeleting, "1 object of kind Baz ("+b.namespace+"/theirs)", "delete them", b.key("abandon"))
		b.fence() // passes go on, and nothing happens
		b.untouched()
		if now := b.live("one").ResourceVersion; now != one {
			t.Errorf("one has version %s, want %s", now, one)
		}
		if now := b.exists(b.crd()).GetResourceVersion(); now != crd {
			t.Errorf("the definition has version %s, want %s", now, crd)
		}
		b.exists(b.in(b.bazOf("ours")))
		b.drop(foreign)
		b.gone()
		b.absent(b.named("one"))
		testenv.Gone(t, b.admin, b.crd(), "deleted")
	})
	t.Run("004-64 created between check and deletion", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		theirs := b.in(b.bazOf("theirs"))
		created := b.createBefore(theirs, http.MethodGet, "validatingadmissionpolicies") // it starts with that
		b.start()
		b.create(plain(b.baz()))
		b.ready()
		b.delete()
		if err := <-created; err != nil {
			t.Fatal(err)
		}
		b.blocked(component.StateDeleting, "theirs")
		if b.exists(b.crd()).GetDeletionTimestamp() != nil {
			t.Error("the definition is being deleted")
		}
		b.drop(b.exists(theirs))
		b.gone()
	})
	t.Run("004-64 created at the last moment", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		created := b.createBefore(b.in(b.bazOf("theirs")), http.MethodDelete, "customresourcedefinitions")
		b.start()
		b.create(plain(b.baz()))
		b.ready()
		b.delete()
		if err := <-created; err == nil || !strings.Contains(err.Error(), "is being deleted by "+b.operator) {
			t.Errorf("create: %v, want a refusal by the fence", err)
		}
		b.gone()
		testenv.Gone(t, b.admin, b.crd(), "deleted")
		b.unfenced()
	})
	t.Run("004-65 W3 a definition leaves the manifests", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(plain(b.baz()), configMap("one", "1"), configMap("operator", "1"), configMap("two", "1"))
		b.ready()
		theirs := b.put(b.bazOf("theirs"))
		b.change(configMap("one", "2"), configMap("two", "1"))
		b.blocked(component.StateProcessing, "1 object of kind Baz ("+b.namespace+"/theirs)")
		if b.live("one").Data["value"] != "2" {
			t.Error("the new manifest was not applied")
		}
		b.fence()
		b.exists(theirs)
		b.live("operator") // what may run the instances stays
		if b.exists(b.crd()).GetDeletionTimestamp() != nil {
			t.Error("the definition is being deleted")
		}
		b.patch("bundles.trimtab.dev/v1", "Bundle", "a", `{"metadata":{"annotations":{"`+b.key("abandon")+`":"CustomResourceDefinition/bazs.`+b.baz().Group+`"}}}`)
		b.ready()
		crd := b.exists(b.crd())
		if crd.GetDeletionTimestamp() != nil || crd.GetAnnotations()[b.key("owner-id")] != "" || crd.GetLabels()[b.key("owner-id")] != "" {
			t.Errorf("the definition is not released: %v", crd.GetAnnotations())
		}
		b.absent(b.named("operator"))
		b.exists(theirs)
		b.delete()
		b.gone()
		b.exists(theirs)
		b.drop(crd)
	})
	t.Run("W12 a definition of which no version is served", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(plain(b.baz()), configMap("one", "1"))
		b.ready()
		b.unserved(t)
	})
}

// released has a blocked deletion released by an event, or not within a test.
func released(c *component.Controller[*bundle.Bundle]) { c.RecheckBlocked(24 * time.Hour) }

// unserved makes the definition of baz one that serves nothing while no operator runs, and deletes the
// component.
func (b *bench) unserved(t *testing.T) {
	t.Helper()
	b.stop()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: b.crd().GetName()}}
	serve := func(served bool) {
		if err := b.admin.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			t.Fatal(err)
		}
		crd.Spec.Versions[0].Served = served
		if err := b.admin.Update(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
	}
	serve(false)
	b.delete()
	b.start()
	b.blocked(component.StateDeleting, "no version of it is served", "serve a version again", b.key("abandon"))
	b.live("one")
	serve(true)
	b.patch("bundles.trimtab.dev/v1", "Bundle", "a", `{"metadata":{"annotations":{"`+api.AnnotationReconcile+`":"now"}}}`)
	b.gone()
}

// createBefore has an object created by somebody else right before the operator, which has not been
// started, creates or deletes an object of a resource for the first time.
func (b *bench) createBefore(obj client.Object, method, resource string) <-chan error {
	result := make(chan error, 1)
	b.before(func(r *http.Request) bool {
		return r.Method == method && strings.Contains(r.URL.Path, "/"+resource+"/")
	},
		func() { result <- b.admin.Create(b.t.Context(), obj) })
	return result
}

// unfenced checks that no admission policy of the operator is left.
func (b *bench) unfenced() {
	b.t.Helper()
	var all admissionv1.ValidatingAdmissionPolicyList
	if err := b.admin.List(b.t.Context(), &all); err != nil {
		b.t.Fatal(err)
	}
	for _, p := range all.Items {
		if strings.HasPrefix(p.Name, b.operator) {
			b.t.Errorf("policy %s is left", p.Name)
		}
	}
}
