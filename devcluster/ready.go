package devcluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// waitUntilUsable waits for the default service account, without which no pod is
// admitted, and for the nodes.
func (c *Cluster) waitUntilUsable(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	core := clients.CoreV1().RESTClient()
	ctx, cancel := c.waiting(ctx, &lateError{what: "it"})
	defer cancel()
	if err := waitFor(ctx, core, "serviceaccounts", "default", "default", &corev1.ServiceAccount{}, exists); err != nil {
		return fmt.Errorf("wait for the ServiceAccount default: %w", err)
	}
	for i := range c.options.nodes() {
		name := node(i).Name
		if err := waitFor(ctx, core, "nodes", "", name, &corev1.Node{}, schedulable); err != nil {
			return fmt.Errorf("wait for node %s: %w", name, err)
		}
	}
	return nil
}

// waitFor watches one object until done returns true.
func waitFor(ctx context.Context, client rest.Interface, kind, namespace, name string, object runtime.Object, done func(runtime.Object) bool) error {
	byName := fields.OneTermEqualSelector("metadata.name", name)
	lw := cache.NewListWatchFromClient(client, kind, namespace, byName)
	_, err := toolswatch.UntilWithSync(ctx, lw, object, nil, func(e watch.Event) (bool, error) {
		return e.Type != watch.Deleted && done(e.Object), nil
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func exists(runtime.Object) bool { return true }

func schedulable(o runtime.Object) bool {
	n, ok := o.(*corev1.Node)
	return ok && len(n.Spec.Taints) == 0 && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
