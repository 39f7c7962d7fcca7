package loop_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// keeper has something to clean up of the ConfigMap a.
type keeper struct{ *counter[*corev1.ConfigMap] }

func (keeper) Selects(_ context.Context, r *loop.Run[*corev1.ConfigMap]) bool {
	return r.Obj.Name == "a"
}

func (k keeper) Cleanup(context.Context, *loop.Run[*corev1.ConfigMap]) loop.CleanupOutcome {
	k.calls <- "cleanup"
	return loop.CleanedUp()
}

// TestWellKnownKinds proves that kinds of Kubernetes can have a controller, too.
func TestWellKnownKinds(t *testing.T) {
	t.Parallel()
	t.Run("002-38 a Deployment and an Ingress", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		deployments := newCounter(func(r *loop.Run[*appsv1.Deployment]) loop.Outcome {
			r.Obj.Annotations = with(r.Obj.Annotations, "example.org/audited", r.Obj.Spec.Template.Spec.Containers[0].Image)
			return loop.Done()
		})
		w.manage(loop.New(deployments, loop.Options[*appsv1.Deployment]{Generation: loop.GenerationAware}).SetupWithManager)
		// What an ingress controller does: it publishes an address.
		ingresses := newCounter(func(r *loop.Run[*networkingv1.Ingress]) loop.Outcome {
			r.Obj.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.7"}}
			return loop.Done()
		})
		w.manage(loop.New(ingresses, loop.Options[*networkingv1.Ingress]{}).SetupWithManager)

		labels := map[string]string{"app": "a"}
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "example.org/a:1"}}},
			}},
		}
		createAs(t, w, d)
		audited := func(image string) {
			t.Helper()
			testenv.Wait(t, w.admin, d, "the audit of "+image, func(d *appsv1.Deployment) bool { return d.Annotations["example.org/audited"] == image })
		}
		audited("example.org/a:1")
		i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: networkingv1.IngressSpec{
			IngressClassName: new("test"),
			DefaultBackend:   &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "a", Port: networkingv1.ServiceBackendPort{Number: 80}}},
		}}
		createAs(t, w, i)
		testenv.Wait(t, w.admin, i, "an address", func(i *networkingv1.Ingress) bool {
			return len(i.Status.LoadBalancer.Ingress) == 1 && i.Status.LoadBalancer.Ingress[0].IP == "192.0.2.7"
		})
		patchAs(t, w, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, false, `{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"example.org/a:2"}]}}}}`)
		audited("example.org/a:2")
		// The controller of Deployments writes status.observedGeneration, and we never do.
		testenv.Wait(t, w.admin, d, "its own controller", func(d *appsv1.Deployment) bool { return d.Status.ObservedGeneration == d.Generation })
		settle(t, deployments) // an annotation is a new generation of a Deployment
		settle(t, ingresses)
		deployments.silent(t, time.Second)
		ingresses.silent(t, time.Second)
		var got []string
		for _, r := range w.requests.Select(func(r testenv.Request) bool { return r.IsWrite() && r.Resource != "events" }) {
			// The controller of Deployments writes at the same time, so a patch of ours may be refused as outdated.
			if r.Code != http.StatusConflict {
				got = append(got, strings.TrimSpace(r.Resource+" "+r.Verb+" "+r.Subresource))
			}
			if strings.Contains(string(r.Body), "observedGeneration") {
				t.Errorf("we wrote observedGeneration: %s", r.Body)
			}
		}
		if diff := cmp.Diff([]string{"deployments patch", "ingresses patch status", "deployments patch"}, got); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
	t.Run("002-37 a lost finalizer and a deletion mark are news of a kind without generations, too", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		c := newCounter[*corev1.ConfigMap](nil)
		w.manage(loop.New(keeper{c}, loop.Options[*corev1.ConfigMap]{Finalizer: "example.org/keeper"}).SetupWithManager)
		named := func() *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}
		}
		kept := func(why string) {
			t.Helper()
			testenv.Wait(t, w.admin, named(), why, func(m *corev1.ConfigMap) bool { return len(m.Finalizers) == 1 })
		}
		createAs(t, w, named())
		kept("its finalizer")
		settle(t, c)
		patchAs(t, w, named(), false, `{"metadata":{"labels":{"theirs":"yes"}}}`)
		c.silent(t, time.Second) // the filter is on
		patchAs(t, w, named(), false, `{"metadata":{"finalizers":null}}`)
		kept("its finalizer again")
		settle(t, c)
		if err := w.admin.Delete(t.Context(), named()); err != nil {
			t.Fatal(err)
		}
		testenv.Gone(t, w.admin, named(), "to be cleaned up")
		if got := <-c.calls; got != "cleanup" || len(c.calls) > 0 {
			t.Errorf("the deletion called %s and %d more, want one cleanup", got, len(c.calls))
		}
	})
	t.Run("kinds without generations", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		c := newCounter(func(r *loop.Run[*corev1.ConfigMap]) loop.Outcome {
			if strings.HasPrefix(r.Obj.Name, "kube-") { // one that Kubernetes puts into each namespace
				return loop.Done()
			}
			r.Obj.Annotations = with(r.Obj.Annotations, "example.org/seen", r.Obj.Data["key"])
			return loop.Done()
		})
		w.manage(loop.New(c, loop.Options[*corev1.ConfigMap]{}).SetupWithManager)
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"key": "one"}}
		createAs(t, w, m)
		seen := func(value string) {
			t.Helper()
			testenv.Wait(t, w.admin, m, "the annotation", func(m *corev1.ConfigMap) bool { return m.Annotations["example.org/seen"] == value })
		}
		seen("one")
		settle(t, c)
		patchAs(t, w, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, false, `{"data":{"key":"two"}}`)
		seen("two")
		settle(t, c)
		patchAs(t, w, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, false, `{"metadata":{"labels":{"theirs":"yes"}}}`)
		c.silent(t, time.Second)
		if got := w.requests.Writes("configmaps", w.namespace, "a"); len(got) != 2 {
			t.Errorf("%d writes, want one for each content", len(got))
		}
	})
}
