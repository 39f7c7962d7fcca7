package cached

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Strip is the transform of a cache. It drops managedFields, and all but the metadata of Secrets, which is enough to
// notice a change.
func Strip(in any) (any, error) {
	if s, ok := in.(*corev1.Secret); ok {
		in = &corev1.Secret{TypeMeta: s.TypeMeta, ObjectMeta: s.ObjectMeta, Type: s.Type}
	}
	return cache.TransformStripManagedFields()(in)
}
