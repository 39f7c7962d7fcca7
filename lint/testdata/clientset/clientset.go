package clientset

import (
	"context"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type reconciler struct {
	client.Client
	Kube kubernetes.Interface // want "reconciler has a clientset, which reads past the cache"
	//trimtab:allow clientset reads the logs of Pods
	Logs *kubernetes.Clientset
}

func (reconciler) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

func setup(cfg *rest.Config) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(cfg) // want "a clientset reads past the cache"
}

type helper struct{ kube kubernetes.Interface }
