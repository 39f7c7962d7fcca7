package component_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestProtectedDefinitions(t *testing.T) {
	t.Parallel()
	t.Run("W16 a definition is not deleted by hand", func(t *testing.T) {
		t.Parallel()
		for name, f := range map[string]func(*testing.T){
			"by hand": byHand, "by its component": byItsComponent, "blocked after its release": blockedAfterRelease,
			"no longer protected": noLongerProtected, "not allowed": mayNotProtect,
			"wanted after its release": wantedAfterRelease, "the policy is deleted": shieldDeleted,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f(t)
			})
		}
	})
}

// protected starts an operator that protects its definitions, and waits until those of its component are.
func protected(t *testing.T) *bench {
	t.Helper()
	b := prepareProtected(t)
	b.start()
	b.create(plain(b.baz()), configMap("one", "1"))
	b.ready()
	within(t, "the policy works", func() bool { return b.admin.Delete(t.Context(), b.crd(), client.DryRunAll) != nil })
	return b
}

func prepareProtected(t *testing.T) *bench {
	t.Helper()
	b := prepareBench(t, func(o *options) { o.ProtectDefinitions = true })
	t.Cleanup(func() {
		for _, policy := range b.shield() {
			if err := b.admin.Delete(context.WithoutCancel(t.Context()), policy); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})
	return b
}

// shield is the policy of the operator, and its binding.
func (b *bench) shield() []client.Object {
	const version = "admissionregistration.k8s.io/v1"
	name := b.operator + ".definitions"
	return []client.Object{object(version, "ValidatingAdmissionPolicyBinding", name, nil), object(version, "ValidatingAdmissionPolicy", name, nil)}
}

func byHand(t *testing.T) {
	t.Helper()
	b := protected(t)
	theirs := b.put(b.bazOf("theirs"))
	crd := b.exists(b.crd())
	err := b.admin.Delete(t.Context(), b.crd())
	want := []string{crd.GetName() + " belongs to a component of " + b.operator, "delete the component instead", b.key("release") + " to " + string(crd.GetUID())}
	if !apierrors.IsForbidden(err) || !containsAll(err.Error(), want) {
		t.Fatalf("deleted by hand: %v, want a refusal with %q", err, want)
	}
	b.exists(theirs)
	b.annotateCRD("release", "yes") // of another definition, or nonsense
	if err := b.admin.Delete(t.Context(), b.crd()); !apierrors.IsForbidden(err) {
		t.Fatalf("released by another UID: %v", err)
	}
	b.put(plain(schema.GroupKind{Group: "other." + b.baz().Group, Kind: "Other"}))
	b.drop(object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "others.other."+b.baz().Group, nil)) // belongs to nobody
	b.annotateCRD("release", string(crd.GetUID()))
	b.drop(b.crd()) // the way out
	testenv.Gone(t, b.admin, theirs, "deleted with its definition")
}

// annotateCRD annotates the definition of baz.
func (b *bench) annotateCRD(name, value string) {
	b.t.Helper()
	body := `{"metadata":{"annotations":{"` + b.key(name) + `":"` + value + `"}}}`
	if err := b.admin.Patch(b.t.Context(), b.crd(), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		b.t.Fatal(err)
	}
}

// byItsComponent: pruned, and deleted with the component. That costs one write more. A new process asks once
// whether the policy is there, and writes nothing.
func byItsComponent(t *testing.T) {
	t.Helper()
	b := protected(t)
	b.stop()
	b.requests.Reset()
	b.start()
	b.fence()
	if sent := b.sent(); sent.Dependents > 0 || len(sent.Reads) > 2 {
		t.Errorf("a new process sent %s", sent)
	}
	b.change(configMap("one", "1"))
	b.ready()
	testenv.Gone(t, b.admin, b.crd(), "pruned")
	b.change(plain(b.baz()), configMap("one", "1"))
	b.ready()
	b.requests.Reset()
	b.delete()
	b.gone()
	testenv.Gone(t, b.admin, b.crd(), "deleted")
	writes := b.requests.Select(func(r testenv.Request) bool { return r.IsWrite() && r.Resource == "customresourcedefinitions" })
	if len(writes) != 2 || writes[0].Verb != "patch" || writes[1].Verb != "delete" {
		t.Errorf("writes of the definition: %v, want its release and its deletion", writes)
	}
	if policy := b.exists(b.shield()[1].(*unstructured.Unstructured)); policy.GetDeletionTimestamp() != nil {
		t.Error("the policy of the operator is deleted with a component")
	}
}

// blockedAfterRelease: an operator that dies between the release and the deletion, and an object that is created
// meanwhile.
func blockedAfterRelease(t *testing.T) {
	t.Helper()
	b := protected(t)
	b.stop()
	crd := b.exists(b.crd())
	b.annotateCRD("release", string(crd.GetUID()))
	theirs := b.put(b.bazOf("theirs"))
	b.delete()
	b.start()
	b.blocked(component.StateDeleting, "theirs")
	testenv.Wait(t, b.admin, b.crd(), "protected again", func(u *unstructured.Unstructured) bool { return u.GetAnnotations()[b.key("release")] == "" })
	if err := b.admin.Delete(t.Context(), b.crd()); !apierrors.IsForbidden(err) {
		t.Fatalf("deleted by hand: %v, want a refusal", err)
	}
	b.drop(theirs)
	b.gone()
	testenv.Gone(t, b.admin, b.crd(), "deleted")
}

// wantedAfterRelease: an operator that dies between the release and the deletion, and a definition that is rendered
// again meanwhile. It is protected again, and not at once: a user may have released it.
func wantedAfterRelease(t *testing.T) {
	t.Helper()
	b := protected(t)
	b.stop()
	b.annotateCRD("release", string(b.exists(b.crd()).GetUID()))
	b.change(plain(b.baz()), configMap("one", "2"))
	b.start()
	b.ready()
	b.fence()
	if err := b.admin.Delete(t.Context(), b.crd(), client.DryRunAll); err != nil {
		t.Errorf("a user who has released it cannot delete it: %v", err)
	}
	b.stop()
	b.tune = func(c *component.Controller[*bundle.Bundle]) { c.RecheckBlocked(time.Second) }
	b.start()
	again := func(u *unstructured.Unstructured) bool { return u.GetAnnotations()[b.key("release")] == "" }
	testenv.Wait(t, b.admin, b.crd(), "protected again", again)
	if err := b.admin.Delete(t.Context(), b.crd(), client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("deleted by hand: %v, want a refusal", err)
	}
	b.annotateCRD("release", string(b.exists(b.crd()).GetUID())) // and nothing else happens
	testenv.Wait(t, b.admin, b.crd(), "protected again", again)
	b.ready()
}

// shieldDeleted: the operator puts the policy up again that somebody deleted, and asks for it no more often than once.
func shieldDeleted(t *testing.T) {
	t.Helper()
	b := protected(t)
	for _, policy := range b.shield() {
		before := b.exists(policy.(*unstructured.Unstructured))
		b.drop(policy)
		testenv.Wait(t, b.admin, before, "another one", func(u *unstructured.Unstructured) bool {
			return u.GetUID() != before.GetUID()
		})
	}
	within(t, "the policy works", func() bool { return b.admin.Delete(t.Context(), b.crd(), client.DryRunAll) != nil })
	b.ready()
	b.fence()
	b.requests.Reset()
	b.fence()
	if sent := b.sent(); sent.Dependents > 0 || len(sent.Reads) > 0 {
		t.Errorf("in steady state the operator sent %s", sent)
	}
}

// noLongerProtected: the option is off now, and the policy is still there.
func noLongerProtected(t *testing.T) {
	t.Helper()
	b := protected(t)
	b.stop()
	b.options.ProtectDefinitions = false
	b.start()
	b.delete()
	b.gone()
	testenv.Gone(t, b.admin, b.crd(), "deleted")
}

// mayNotProtect: an operator that may not put the policy up leaves definitions alone, and says why.
func mayNotProtect(t *testing.T) {
	t.Helper()
	b := prepareProtected(t)
	b.cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "/validatingadmissionpolicies/"+b.operator+".definitions") {
				r = r.Clone(r.Context())
				r.Header.Set("Impersonate-User", "nobody")
			}
			return next.RoundTrip(r)
		})
	})
	b.start()
	b.create(plain(b.baz()), configMap("one", "1"))
	b.failed("cannot create CustomResourceDefinition "+b.crd().GetName()+": protect definitions by ValidatingAdmissionPolicy "+b.operator+".definitions", "cannot get resource")
	b.value("one", "1")
	b.absent(b.crd())
}

// TestProtectionNeeds: the role allows to keep the policy, and no other.
func TestProtectionNeeds(t *testing.T) {
	t.Parallel()
	o := options{Name: "a.example.org", ProtectDefinitions: true, Kinds: []schema.GroupVersionKind{{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}}}
	scheme := runtime.NewScheme()
	if err := bundle.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	needs, err := component.New(component.RenderFunc[*bundle.Bundle](render), o).Needs(scheme)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, n := range needs {
		if n.Group == "admissionregistration.k8s.io" && len(n.Names) == 1 && n.Names[0] == "a.example.org.definitions" && strings.Join(n.Verbs, " ") == "get list patch watch" {
			found++
		}
	}
	if found != 2 {
		t.Errorf("the needs are %v, want get, list, patch and watch of the policy and its binding", needs)
	}
}
