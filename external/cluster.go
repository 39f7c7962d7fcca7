package external

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/loop"
)

// cluster is the identity of the Kubernetes cluster, asked for once in a process. The zero
// value has not asked yet.
type cluster struct {
	mu  sync.Mutex
	uid string
}

// clusterDeadline bounds the one read that all objects of the kind may wait for.
const clusterDeadline = 10 * time.Second

// clusterNeed is the permission to ask.
func clusterNeed() loop.Need {
	return loop.Need{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Verbs: []string{"get"},
		Names: []string{metav1.NamespaceSystem}, ClusterWide: true,
	}
}

// recordNeed is the permission that the operator's policy for records asks for.
func recordNeed() loop.Need {
	return loop.Need{GroupVersionKind: api.RecordKind().WithVersion("v1"), Verbs: []string{"update"}, ClusterWide: true}
}

// get returns the UID of namespace kube-system, which no two clusters share and which stays
// as long as a cluster lives. Without it nothing can be owned, because what is made could not
// be told from what another cluster made.
func (c *cluster) get(ctx context.Context, live client.Reader) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uid != "" {
		return c.uid, nil
	}
	ctx, cancel := context.WithTimeout(ctx, clusterDeadline)
	defer cancel()
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	switch err := live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, ns); {
	case apierrors.IsNotFound(err):
		return "", errors.New("the cluster has no namespace " + metav1.NamespaceSystem + ", whose UID tells clusters apart; create it, nothing outside is touched until then")
	case err != nil:
		return "", fmt.Errorf("ask which cluster this is: read namespace %s: %w", metav1.NamespaceSystem, err)
	}
	c.uid = string(ns.GetUID())
	return c.uid, nil
}
