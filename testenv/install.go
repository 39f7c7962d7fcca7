package testenv

import (
	"context"
	"io/fs"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/manifest"
)

// fieldOwner is the field manager of what Install applies.
const fieldOwner = client.FieldOwner("trimtab-testenv")

// Install applies objects, mostly CRDs, by server-side apply, and returns when all CRDs are
// established and their kinds can be used. It may be called again. The objects are not removed,
// because all tests of the binary share the server.
//
// The API server delays the first objects of a new kind by up to two seconds after its CRD has been
// established, so install all CRDs in one call.
func Install(t testing.TB, cfg *rest.Config, objs ...client.Object) {
	t.Helper()
	every, definer := Client(t, cfg), clientOf(t, cfg, definitions)
	var crds []*unstructured.Unstructured
	for _, obj := range objs {
		u, err := toApply(every, obj)
		if err != nil {
			t.Fatalf("install %T %q: %v", obj, obj.GetName(), err)
		}
		c := every
		if u.GroupVersionKind().GroupKind() == apiextensionsv1.Kind("CustomResourceDefinition") {
			c, crds = definer, append(crds, u)
		}
		err = c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), fieldOwner, client.ForceOwnership)
		if err != nil {
			t.Fatalf("install %s %q: %v", u.GetKind(), u.GetName(), err)
		}
	}
	for _, crd := range crds {
		id := served{cfg.Host, crd.GetUID(), crd.GetResourceVersion()}
		if _, known := servedBefore.Load(id); known {
			continue // it is as it was when its kinds could be used
		}
		id.resourceVersion = awaitServed(t, every, definer, crd.GetName())
		servedBefore.Store(id, true)
	}
}

// served is a CRD on a server, in the state in which its kinds can be used.
type served struct {
	host            string
	uid             types.UID
	resourceVersion string
}

//arch:state what one test has waited for, the next one need not
var servedBefore sync.Map

// InstallFS installs all objects in the files of fsys whose names end in .yaml, .yml or .json, for
// example os.DirFS("config/crd"). See [Install].
func InstallFS(t testing.TB, cfg *rest.Config, fsys fs.FS) {
	t.Helper()
	objs, err := readAll(fsys)
	if err != nil {
		t.Fatalf("read the objects to install: %v", err)
	}
	if len(objs) == 0 {
		t.Fatal("there is no object to install: no file ends in .yaml, .yml or .json, or all are empty")
	}
	Install(t, cfg, objs...)
}

// toApply returns obj in the form of a request: with its kind, and without fields that only the
// server sets.
func toApply(c client.Client, obj client.Object) (*unstructured.Unstructured, error) {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "status")
	return u, nil
}

func readAll(fsys fs.FS) ([]client.Object, error) {
	var objs []client.Object
	err := manifest.Documents(fsys, func(document []byte) error {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &u.Object); err != nil {
			return err
		}
		if len(u.Object) > 0 {
			objs = append(objs, u)
		}
		return nil
	})
	return objs, err
}

// awaitServed waits until a CRD is established and the server serves its kinds, which happens a moment
// later. It returns the CRD's resourceVersion.
func awaitServed(t testing.TB, every client.Client, definer client.WithWatch, name string) string {
	t.Helper()
	asked := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	crd := Wait(t, definer, asked, "the CRD to be established", established)
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.ListKind}
		poll(t, gvk.String()+" to be served", func(ctx context.Context) (bool, error) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk)
			err := every.List(ctx, list, client.Limit(1))
			if unserved(err) {
				return false, nil
			}
			return err == nil, err
		})
	}
	return crd.GetResourceVersion()
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, cond := range crd.Status.Conditions {
		if cond.Type == apiextensionsv1.Established {
			return cond.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
