package children_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/children"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
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

// idle is a reconciler that does not apply its children.
type idle struct{}

func (idle) Reconcile(context.Context, *loop.Run[*probe.Probe]) loop.Outcome { return loop.Done() }

// TestDropped: of children that are not protected any more, nothing is left that keeps them, also if no pass applies them,
// and those of which the owner's finalizer was taken by hand.
func TestDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(children.Of(config1().Protected()), options{})
	a, b := w.ready(w.create("a", 1)), w.ready(w.create("b", 1))
	w.stop()
	w.patch(b, `{"metadata":{"finalizers":null}}`)
	w.delete(b)
	w.start(children.Of(config1()), options{Reconciler: idle{}})
	testenv.Wait(t, w.admin, a, "the owner to lose it", func(p *probe.Probe) bool { return len(p.Finalizers) == 0 })
	if c := read(w, w.child("a")); len(c.Finalizers) > 0 {
		t.Errorf("the owner lost its finalizer before the child lost %v", c.Finalizers)
	}
	testenv.Gone(t, w.admin, w.child("b"), "the orphan to be gone")
}

// TestNearer: a child that an owner reference did not reach, and should by now, is deleted with its owner, also if no
// pass applied it.
func TestNearer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(children.Of(config1()), options{ManualOwnerRefs: true})
	p := w.ready(w.create("a", 1))
	w.stop()
	w.start(children.Of(config1()), options{Reconciler: idle{}})
	w.next()
	w.delete(p)
	testenv.Gone(t, w.admin, p, "the owner to be gone")
	testenv.Gone(t, w.admin, w.child("a"), "the child to be gone")
}

// TestOthersOrphans: an owner in a namespace that the operator does not watch is the business of another installation.
func TestOthersOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	var logged []string
	w.log = funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		logged = append(logged, args)
	}, funcr.Options{})
	w.terms.Namespaces = []string{w.namespace}
	child := func(name, owner string) *corev1.ConfigMap {
		c := w.child(name)
		c.Labels = map[string]string{ownerKey: "0"}
		c.Annotations = map[string]string{ownerKey: owner + "/owner " + w.namespace + "/" + name}
		w.do(w.admin.Create(t.Context(), c))
		return c
	}
	w.start(children.Of(config1().Elsewhere()), options{})
	theirs := child("theirs", "not-watched")
	testenv.Gone(t, w.admin, child("ours", w.namespace), "the orphan to be gone") // one after the other
	read(w, theirs)
	w.stop()
	mu.Lock()
	defer mu.Unlock()
	if all := strings.Join(logged, "\n"); strings.Contains(all, "Reconciler error") {
		t.Errorf("logged\n%s", all)
	}
}

// TestRestartOfAll: a new process sends nothing for the children that a web page has.
func TestRestartOfAll(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"app": "a"}
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "a", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	set := func() *children.Set[*probe.Probe] {
		return children.Of(
			config1(),
			children.Named("service", func(*probe.Probe) *corev1.Service {
				return &corev1.Service{Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}}
			}),
			children.Named("deployment", func(*probe.Probe) *appsv1.Deployment {
				return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
					Replicas: new(int32(0)), Selector: metav1.SetAsLabelSelector(labels),
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
						Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1.29", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}},
					}},
				}}
			}),
			children.Named("ingress", func(*probe.Probe) *networkingv1.Ingress {
				return &networkingv1.Ingress{Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
					IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
						Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: backend,
					}}}},
				}}}}
			}),
		)
	}
	w := newWorld(t)
	w.start(set(), options{})
	p := w.create("a", 1)
	for _, obj := range []client.Object{&networkingv1.Ingress{}, &appsv1.Deployment{}, &corev1.Service{}} {
		obj.SetNamespace(p.Namespace)
		obj.SetName(p.Name)
		testenv.Wait(t, w.admin, obj, "the child to be created", func(client.Object) bool { return true })
	}
	w.stop()
	w.drain()
	w.requests.Reset()
	w.start(set(), options{})
	w.next()
	for _, resource := range []string{"configmaps", "services", "deployments", "ingresses"} {
		if sent := w.sent(resource); len(sent) > 0 {
			t.Errorf("sent %v to %s", sent, resource)
		}
	}
}
