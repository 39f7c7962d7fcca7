package trigger

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/kindcache"
)

// syncWait is how long a read waits until the objects of its kind are known for the first time.
const syncWait = 10 * time.Second

// poolOf makes the pool of a source whose kinds come and go.
func poolOf[T client.Object](target Target[T]) *kindcache.Pool {
	m := target.Manager
	return kindcache.New(kindcache.Options{
		Config: m.GetConfig(), HTTPClient: m.GetHTTPClient(), Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(), Namespaces: target.Namespaces,
	})
}

// checkKind returns an error if of does not say of which kind it is. where is where the author has put it.
func checkKind(where string, of client.Object) error {
	if isNil(of) {
		return fmt.Errorf("%s is nil; it is an empty object of the kind, such as &corev1.ConfigMap{}", where)
	}
	switch of.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		if of.GetObjectKind().GroupVersionKind().Empty() {
			return fmt.Errorf("%s is a %T without apiVersion and kind; set both", where, of)
		}
	}
	return nil
}

func checkKinds(of string, kinds []client.Object) error {
	for n, kind := range kinds {
		if err := checkKind(fmt.Sprintf("number %d of the Kinds of %s", n, of), kind); err != nil {
			return err
		}
	}
	return nil
}

func isNil(v any) bool {
	of := reflect.ValueOf(v)
	return !of.IsValid() || of.Kind() == reflect.Pointer && of.IsNil()
}

// needsOf are the permissions to watch kinds that may come and go. If there may be no CRD yet, it is waited for.
func needsOf(kinds []client.Object) []Need {
	var needs []Need
	custom := false
	for _, kind := range kinds {
		verbs := []string{"list", "watch"}
		if isSecret(kind) {
			verbs = append(verbs, "get")
		}
		needs = append(needs, Need{Of: kind, Verbs: verbs, Later: true})
		custom = custom || !builtIn(kind)
	}
	if custom {
		crd := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
		needs = append(needs, Need{Of: crd, Verbs: []string{"list", "watch"}, ClusterWide: true})
	}
	return needs
}

// builtIn reports whether every API server serves the kind.
func builtIn(kind client.Object) bool {
	if gvk := kind.GetObjectKind().GroupVersionKind(); !gvk.Empty() {
		return clientgoscheme.Scheme.Recognizes(gvk)
	}
	kinds, _, err := clientgoscheme.Scheme.ObjectKinds(kind)
	return err == nil && len(kinds) > 0
}

// secretKind is the kind of Secrets.
var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")

// isSecret reports whether an object is a Secret of which more than metadata is asked for.
func isSecret(obj client.Object) bool {
	switch obj.(type) {
	case *corev1.Secret:
		return true
	case *metav1.PartialObjectMetadata:
		return false
	}
	return obj.GetObjectKind().GroupVersionKind().GroupKind() == secretKind.GroupKind()
}

// problem returns why the objects of a kind are not known, or are out of date. A kind that the API server does not serve is
// no problem: it has no objects.
func problem(id kindcache.ID, s kindcache.Status, way string) error {
	switch {
	case s.Forbidden() != nil:
		return refused(id, s.Forbidden(), way)
	case s.Absent || s.Synced && s.Failures <= tolerated:
		return nil
	case s.Err != nil:
		return fmt.Errorf("%s: %w", id.Kind, s.Err)
	case s.Synced:
		return nil
	}
	return errNotSynced
}

// refused is the error of a kind that may not be watched. way is where it has to be added.
func refused(id kindcache.ID, err error, way string) error {
	return fmt.Errorf("the operator may not list and watch %s; add it to %s, and install the new role: %w", strings.TrimPrefix(id.GroupKind().String(), "."), way, err)
}

// awaited returns where a kind is read, after a short wait if it is new.
func awaited(ctx context.Context, held *kindcache.Held, way string) (client.Reader, error) {
	ctx, cancel := context.WithTimeout(ctx, syncWait)
	defer cancel()
	reader, err := held.Await(ctx)
	switch id := held.ID(); {
	case err == nil:
		return reader, nil
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("the API server does not serve %s; its CRD is waited for: %w", id.GroupKind(), err)
	case errors.Is(err, held.Status().Forbidden()) && held.Status().Forbidden() != nil:
		return nil, refused(id, err, way)
	default:
		return nil, fmt.Errorf("read %s: %w", id.GroupKind(), err)
	}
}
