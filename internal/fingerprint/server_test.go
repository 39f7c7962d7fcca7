package fingerprint_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/fingerprint"
	"github.com/trimtab-dev/trimtab/internal/fingerprint/fingerprinttest"
	"github.com/trimtab-dev/trimtab/testenv"
)

const us = "us"

// TestDrift does to applied objects what clients do, on a real API server. What the fingerprint makes
// of it is compared with what applying the manifest by force would change.
func TestDrift(t *testing.T) {
	c, namespace := cluster(t)
	for i, test := range fingerprinttest.Cases() {
		for _, kind := range fingerprinttest.Kinds() {
			if !slices.Contains(test.Kinds, kind.Name) {
				continue
			}
			t.Run(test.Name+"/"+kind.Name, func(t *testing.T) {
				t.Parallel()
				o := fingerprinttest.Object{Client: c, Kind: kind, Manager: us, Namespace: namespace, Name: fmt.Sprintf("case-%d", i)}
				drift(t, o, test)
			})
		}
	}
}

func cluster(t *testing.T) (c client.Client, namespace string) {
	t.Helper()
	cfg := testenv.Start(t)
	cfg.WarningHandlerWithContext = rest.NoWarnings{} // that a list holds a key twice is the point of a case
	testenv.Install(t, cfg, fingerprinttest.CRD())
	return testenv.Client(t, cfg), testenv.Namespace(t, cfg)
}

func drift(t *testing.T, o fingerprinttest.Object, test fingerprinttest.Case) {
	t.Helper()
	manifest := o.Kind.Manifest(o.Namespace, o.Name)
	before := manifest.DeepCopy()
	if err := fingerprinttest.Apply(t.Context(), o.Client, us, before); err != nil {
		t.Fatal(err)
	}
	if err := test.Do(t.Context(), o); err != nil {
		t.Fatalf("%s: %v", test.Name, err)
	}
	after, err := o.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := oracle(t, o, manifest, after); want != test.Want {
		t.Errorf("applying again shows %q, the case says %q", want, test.Want)
	}
	if got := verdict(before, after, manifest); got != test.Want {
		t.Errorf("fingerprint says %q, want %q\ndiffers at %v", got, test.Want, diff(manifest, after))
	}
	if paths := diff(manifest, after); (len(paths) > 0) != (test.Want == fingerprinttest.Drift) {
		t.Errorf("differs from the manifest at %v, want %q", paths, test.Want)
	}
}

// verdict judges by the fingerprints of what the write answered and of what is there now, and tells
// lost ownership from drift by the difference from the manifest.
func verdict(before, after, manifest *unstructured.Unstructured) fingerprinttest.Want {
	baseline, _ := fingerprint.Of(before.Object, us, metav1.ManagedFieldsOperationApply)
	now, ok := fingerprint.Of(after.Object, us, metav1.ManagedFieldsOperationApply)
	switch {
	case ok && now == baseline:
		return fingerprinttest.Same
	case len(diff(manifest, after)) > 0:
		return fingerprinttest.Drift
	}
	return fingerprinttest.Own
}

// oracle judges by what applying the manifest by force would change.
func oracle(t *testing.T, o fingerprinttest.Object, manifest, live *unstructured.Unstructured) fingerprinttest.Want {
	t.Helper()
	again := manifest.DeepCopy()
	if err := fingerprinttest.Apply(t.Context(), o.Client, us, again, client.DryRunAll); err != nil {
		return fingerprinttest.Drift
	}
	if !cmp.Equal(content(live), content(again)) {
		return fingerprinttest.Drift
	}
	if !cmp.Equal(owned(live), owned(again)) {
		return fingerprinttest.Own
	}
	return fingerprinttest.Same
}

// content is an object without what the API server keeps about it, and without its status, which
// controllers write meanwhile.
func content(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	for _, name := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", name)
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	delete(u.Object, "status")
	return u.Object
}

func owned(u *unstructured.Unstructured) string {
	for _, entry := range u.GetManagedFields() {
		if entry.Manager == us && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			return entry.FieldsV1.String()
		}
	}
	return ""
}

func diff(manifest, live *unstructured.Unstructured) []string {
	paths, _ := fingerprint.Diff(manifest.Object, live.Object, 0)
	var text []string
	for _, p := range paths {
		text = append(text, p.String())
	}
	return text
}

// TestReplaced does the same to objects that were created and updated instead of applied. An update
// owns only what it changed: the manager's entry says what was written if the manager created the
// object, and next to nothing if it adopted it. The values at the manifest's fields are exact for both.
func TestReplaced(t *testing.T) {
	c, namespace := cluster(t)
	for how, write := range map[string]func(*testing.T, fingerprinttest.Object) *unstructured.Unstructured{
		"created": created, "adopted": adopted,
	} {
		for i, test := range fingerprinttest.Cases() {
			for _, kind := range fingerprinttest.Kinds() {
				if !slices.Contains(test.Kinds, kind.Name) || !specified(test) {
					continue
				}
				t.Run(how+"/"+test.Name+"/"+kind.Name, func(t *testing.T) {
					t.Parallel()
					o := fingerprinttest.Object{Client: c, Kind: kind, Manager: us, Namespace: namespace, Name: fmt.Sprintf("%s-%d", how, i)}
					replaced(t, o, test, write(t, o), how)
				})
			}
		}
	}
}

// specified reports whether a case is one of the sixteen of the specification.
func specified(test fingerprinttest.Case) bool {
	return test.Name[0] >= '0' && test.Name[0] <= '9'
}

func created(t *testing.T, o fingerprinttest.Object) *unstructured.Unstructured {
	t.Helper()
	u := o.Kind.Manifest(o.Namespace, o.Name)
	if err := o.Client.Create(t.Context(), u, client.FieldOwner(us)); err != nil {
		t.Fatal(err)
	}
	return u
}

// adopted updates an object that another created with other values.
func adopted(t *testing.T, o fingerprinttest.Object) *unstructured.Unstructured {
	t.Helper()
	theirs := o.Kind.Manifest(o.Namespace, o.Name)
	theirs.SetLabels(map[string]string{"ours": "0"})
	if err := o.Client.Create(t.Context(), theirs, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	return update(t, o)
}

func update(t *testing.T, o fingerprinttest.Object) *unstructured.Unstructured {
	t.Helper()
	for {
		live, err := o.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		u := o.Kind.Manifest(o.Namespace, o.Name)
		u.SetResourceVersion(live.GetResourceVersion())
		err = o.Client.Update(t.Context(), u, client.FieldOwner(us))
		if apierrors.IsConflict(err) {
			continue // the controller of Deployments wrote meanwhile
		}
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
}

func replaced(t *testing.T, o fingerprinttest.Object, test fingerprinttest.Case, before *unstructured.Unstructured, how string) {
	t.Helper()
	if err := test.Do(t.Context(), o); err != nil {
		t.Fatalf("%s: %v", test.Name, err)
	}
	after, err := o.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	manifest := o.Kind.Manifest(o.Namespace, o.Name)
	changed := fingerprint.OfManifest(before.Object, manifest.Object) != fingerprint.OfManifest(after.Object, manifest.Object)
	// Without managedFields the order of sets counts: an update that changes nothing may follow.
	if test.Want != fingerprinttest.Own && changed != (test.Want == fingerprinttest.Drift) {
		t.Errorf("values at the manifest's fields changed: %v, want %q\ndiffers at %v", changed, test.Want, diff(manifest, after))
	}
	if how == "adopted" {
		return
	}
	baseline, _ := fingerprint.Of(before.Object, us, metav1.ManagedFieldsOperationUpdate)
	now, ok := fingerprint.Of(after.Object, us, metav1.ManagedFieldsOperationUpdate)
	if same := ok && now == baseline; same != (test.Want == fingerprinttest.Same) {
		t.Errorf("the Update entry says same: %v, want %q", same, test.Want)
	}
}
