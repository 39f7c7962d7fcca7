package children_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/children"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestNamespace: a Namespace is gone when its content is, which the owner waits for and learns of.
func TestNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := w.namespace + "-child"
	set := func() *children.Set[*probe.Probe] {
		return children.Of(children.Named("space", func(*probe.Probe) *corev1.Namespace {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}).Elsewhere().When(large))
	}
	w.start(set(), options{})
	p := w.ready(w.create("a", 2))
	space, holder := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, &corev1.ConfigMap{}
	fill := func() {
		*holder = corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "holder", Finalizers: []string{"example.org/wait"}}}
		w.do(w.admin.Create(t.Context(), holder))
	}
	empty := func() { w.patch(holder, `{"metadata":{"finalizers":null}}`) }
	terminating := func() {
		testenv.Wait(t, w.admin, space, "the Namespace to terminate", func(n *corev1.Namespace) bool { return n.DeletionTimestamp != nil })
	}

	fill()
	w.patch(p, `{"spec":{"size":1}}`)
	w.reason(read(w, p), "ChildrenNotReady")
	terminating()
	empty()
	w.ready(read(w, p)) // the end of the Namespace woke it
	w.patch(p, `{"spec":{"size":2}}`)
	w.ready(read(w, p))

	fill()
	w.delete(p)
	terminating()
	w.reason(read(w, p), "ChildrenTerminating")
	old := read(w, space.DeepCopyObject().(client.Object)).GetUID()
	empty()
	testenv.Gone(t, w.admin, p, "the owner to be gone")
	if now := (&corev1.Namespace{}); w.admin.Get(t.Context(), client.ObjectKeyFromObject(space), now) == nil && now.UID == old {
		t.Error("the owner went before its child")
	}
}
