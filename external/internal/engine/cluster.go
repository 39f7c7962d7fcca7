package engine

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

// cluster is the identity of the Kubernetes cluster, read once per process. The zero value has not
// been read yet.
type cluster struct {
	mu  sync.Mutex
	uid string
	// asking is the read in progress; nil if there is none.
	asking *clusterRead
}

// clusterRead is one read of the identity. Its result is final once done is closed.
type clusterRead struct {
	done chan struct{}
	uid  string
	err  error
}

// clusterDeadline bounds the one read that all objects of the kind may wait for.
const clusterDeadline = 10 * time.Second

// clusterNeed is the permission to read the identity.
func clusterNeed() loop.Need {
	return loop.Need{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Verbs: []string{"get"},
		Names: []string{metav1.NamespaceSystem}, ClusterWide: true,
	}
}

// recordNeed is the permission that the operator's admission policy for records checks.
func recordNeed() loop.Need {
	return loop.Need{GroupVersionKind: api.RecordKind().WithVersion("v1"), Verbs: []string{"update"}, ClusterWide: true}
}

// get returns the UID of namespace kube-system, which is unique to a cluster and lives as long as
// the cluster. Without it nothing can be owned, because our resources could not be told from those
// of another cluster. Concurrent callers share one read and its result; nobody waits for another's
// read beyond the end of ctx.
func (c *cluster) get(ctx context.Context, live client.Reader) (string, error) {
	c.mu.Lock()
	known, read := c.uid, c.asking
	if known != "" {
		c.mu.Unlock()
		return known, nil
	}
	if read != nil {
		c.mu.Unlock()
		select {
		case <-read.done:
			return read.uid, read.err
		case <-ctx.Done():
			return "", fmt.Errorf("ask which cluster this is: %w", context.Cause(ctx))
		}
	}
	read = &clusterRead{done: make(chan struct{}), err: errors.New("ask which cluster this is: the read ended without an answer")}
	c.asking = read
	c.mu.Unlock()
	defer c.take(read)
	read.uid, read.err = readCluster(ctx, live)
	return read.uid, read.err
}

// take ends a read.
func (c *cluster) take(read *clusterRead) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uid, c.asking = read.uid, nil
	close(read.done)
}

func readCluster(ctx context.Context, live client.Reader) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterDeadline)
	defer cancel()
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	switch err := live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, ns); {
	case apierrors.IsNotFound(err):
		return "", errors.New("the cluster has no namespace " + metav1.NamespaceSystem + ", whose UID identifies the cluster; create it, nothing outside is touched until then")
	case err != nil:
		return "", fmt.Errorf("ask which cluster this is: read namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(ns.GetUID()), nil
}
