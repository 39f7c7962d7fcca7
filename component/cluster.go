package component

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster is the identity of the cluster, read once per process. The zero value has not been read yet.
type cluster struct {
	mu  sync.Mutex
	uid string
}

// get returns the UID of namespace kube-system, which is unique to a cluster and lives as long as it.
func (c *cluster) get(ctx context.Context, live client.Reader) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uid != "" {
		return c.uid, nil
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, ns); err != nil {
		return "", fmt.Errorf("ask which cluster this is: read namespace %s: %w", metav1.NamespaceSystem, err)
	}
	c.uid = string(ns.GetUID())
	return c.uid, nil
}
