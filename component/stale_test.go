package component_test

import (
	"context"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestFormerLeader: a process that has lost the lease ends a pass that it had begun. What it writes must not
// undo what its successor recorded.
func TestFormerLeader(t *testing.T) {
	t.Parallel()
	b := prepareBench(t)
	var armed atomic.Bool
	entered, released := make(chan struct{}), make(chan struct{})
	b.renderer = component.RenderFunc[*bundle.Bundle](func(ctx context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		if armed.CompareAndSwap(true, false) {
			close(entered)
			<-released
		}
		return render(ctx, r)
	})
	b.start()
	b.create(configMap("one", "1"))
	b.ready()

	armed.Store(true)
	b.change(configMap("one", "1"), configMap("two", "1"))
	<-entered
	b.renderer = component.RenderFunc[*bundle.Bundle](render)
	b.start() // the successor
	b.ready()
	b.change(configMap("one", "1"), configMap("three", "1"))
	b.ready()
	b.stop()
	b.change(configMap("one", "1"))
	close(released)
	b.ready()
	testenv.Gone(t, b.admin, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "three"}}, "deleted, as the successor recorded it")
}
