package loop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
)

// TestWrapClient: through it, a wrapped reconciler never reads anything older than what it wrote, and its next pass waits for that.
func TestWrapClient(t *testing.T) {
	t.Parallel()
	l := &looptest.Lag{Resource: "configmaps"}
	w := laggingTest{newNamespaceTest(t, l.Wrap), l}
	t.Cleanup(l.Release)
	var c client.Client
	result, calls := make(chan error, 100), 0
	ordinary := reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		switch calls++; calls {
		case 1: // G1
			err := reads(ctx, c, req.Namespace, "")
			w.Hold()
			for _, write := range writesOf(req.Namespace) {
				version, writing := write.do(ctx, c)
				err = errors.Join(err, writing, reads(ctx, c, req.Namespace, version))
			}
			own := &probe.Probe{}
			err = errors.Join(err, c.Get(ctx, req.NamespacedName, own))
			own.Status.Note = "its own"
			err = errors.Join(err, c.Status().Update(ctx, own))
			if own = (&probe.Probe{}); c.Get(ctx, req.NamespacedName, own) != nil || own.Status.Note != "its own" {
				err = errors.Join(err, fmt.Errorf("the note after it was written is %q", own.Status.Note))
			}
			w.Release() // a long hold would have the next pass read live
			w.Hold()
			written := child(req.Namespace)
			written.Data = map[string]string{"last": "yes"}
			err = errors.Join(err, c.Patch(ctx, written, client.Merge))
			w.requests.Reset()
			result <- err
			return reconcile.Result{RequeueAfter: time.Millisecond}, nil
		case 2: // G2
			obj := child(req.Namespace)
			err := errors.Join(c.Get(ctx, client.ObjectKeyFromObject(obj), obj), live(w))
			if obj.Data["last"] != "yes" {
				err = errors.Join(err, fmt.Errorf("the pass read %v", obj.Data))
			}
			result <- err
		}
		return reconcile.Result{}, nil
	})
	w.manage(func(mgr ctrl.Manager) error {
		c = loop.WrapClient(mgr.GetClient())
		return loop.New(loop.Wrap[*probe.Probe](ordinary), options{Workers: 1}).SetupWithManager(mgr)
	}, func(o *ctrl.Options) { o.Client.Cache = &client.CacheOptions{Unstructured: true} })
	w.create("a")
	if err := <-result; err != nil {
		t.Error(err)
	}
	select {
	case err := <-result:
		t.Fatalf("the next pass began before the cache showed what was written: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	w.Release()
	if err := <-result; err != nil {
		t.Error(err)
	}
	// Outside of passes it is the client that it was made from.
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "a"}, &probe.Probe{}); err != nil {
		t.Error(err)
	}
}
