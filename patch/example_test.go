package patch_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trimtab-dev/trimtab/patch"
)

// podReconciler is a reconciler of controller-runtime.
type podReconciler struct{ client.Client }

// region: reconcile

// Reconcile marks a Pod and reports on it.
func (r podReconciler) Reconcile(ctx context.Context, req ctrl.Request) (_ ctrl.Result, err error) {
	pod := &corev1.Pod{}
	if err := r.Get(ctx, req.NamespacedName, pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := patch.From(pod)
	defer func() { err = errors.Join(err, before.Write(ctx, r.Client, pod)) }()

	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "example.org/seen", "yes")
	pod.Status.Message = "seen"
	return ctrl.Result{}, nil
}

// endregion: reconcile

// What the reconciler changes is written when it returns, whether it fails or not.
func ExampleFrom() {
	ctx := context.Background()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	c := fake.NewClientBuilder().WithObjects(pod).WithStatusSubresource(pod).Build()
	_, err := podReconciler{c}.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pod)})
	if err == nil {
		err = c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	}
	fmt.Println(pod.Annotations, pod.Status.Message, err)
	// Output:
	// map[example.org/seen:yes] seen <nil>
}
