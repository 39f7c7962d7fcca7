// Package clusterid tells Kubernetes clusters apart: a cluster's identity is the UID of its namespace
// kube-system.
package clusterid

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
)

// Reader reads the identity of one cluster, once. The zero value has not read it yet. All methods are safe
// for concurrent use.
type Reader struct {
	mu  sync.Mutex
	uid string
	// asking is the read in progress; nil if there is none.
	asking *pending
}

// pending is one read of the identity. Its result is final once done is closed.
type pending struct {
	done chan struct{}
	uid  string
	err  error
}

// deadline bounds the one read that all objects of the kind may wait for.
const deadline = 10 * time.Second

// Get returns the UID of namespace kube-system, which is unique to a cluster and lives as long as
// the cluster. Without it nothing can be owned, because our resources could not be told from those
// of another cluster. Concurrent callers share one read and its result; nobody waits for another's
// read beyond the end of ctx.
func (r *Reader) Get(ctx context.Context, live client.Reader) (string, error) {
	r.mu.Lock()
	known, read := r.uid, r.asking
	if known != "" {
		r.mu.Unlock()
		return known, nil
	}
	if read != nil {
		r.mu.Unlock()
		select {
		case <-read.done:
			return read.uid, read.err
		case <-ctx.Done():
			return "", fmt.Errorf("ask which cluster this is: %w", context.Cause(ctx))
		}
	}
	read = &pending{done: make(chan struct{}), err: errors.New("ask which cluster this is: the read ended without an answer")}
	r.asking = read
	r.mu.Unlock()
	defer r.take(read)
	read.uid, read.err = ask(ctx, live)
	return read.uid, read.err
}

// take ends a read.
func (r *Reader) take(read *pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uid, r.asking = read.uid, nil
	close(read.done)
}

// ask reads it from the API server.
func ask(ctx context.Context, live client.Reader) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
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
