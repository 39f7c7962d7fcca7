package apiserver

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	scheduling "k8s.io/kubernetes/pkg/apis/scheduling/v1"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Populate puts into an empty cluster what a new cluster has: its first namespaces and
// priority classes.
func Populate(db *store.DB) error {
	first, err := firstObjects()
	if err != nil {
		return err
	}
	for _, s := range first {
		db.Load(s.Key, s.Data)
	}
	return nil
}

// firstObjects encodes once what each cluster begins with.
var firstObjects = sync.OnceValues(func() ([]store.Stored, error) {
	var all []store.Stored
	for _, name := range []string{metav1.NamespaceDefault, corev1.NamespaceNodeLease, metav1.NamespacePublic, metav1.NamespaceSystem} {
		s, err := seed("namespaces", newNamespace(name))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	for _, class := range scheduling.SystemPriorityClasses() {
		class.Generation = 1
		s, err := seed("priorityclasses", class)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
})

func newNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
}

// seed encodes an object as if it had been there long before a cluster begins. The same object
// gets the same UID in each cluster.
func seed(resource string, obj runtime.Object) (store.Stored, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return store.Stored{}, err
	}
	key := "/" + resource + "/"
	if m.GetNamespace() != "" {
		key += m.GetNamespace() + "/"
	}
	key += m.GetName()
	m.SetUID(types.UID(store.UID(key, 0)))
	m.SetCreationTimestamp(metav1.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC))
	c, err := sharedCore()
	if err != nil {
		return store.Stored{}, err
	}
	k, ok := c.kinds["/"+resource]
	if !ok {
		return store.Stored{}, fmt.Errorf("kubesim: %s are not served", resource)
	}
	data, err := runtime.Encode(k.codec, obj)
	return store.Stored{Key: key, Data: data}, err
}
