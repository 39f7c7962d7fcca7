package controller

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	cachev1alpha1 "example.com/memcached/api/v1alpha1"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"
)

func TestFaults(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "memcached-sample", Namespace: "default"}}
	m := &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "memcached-sample", Namespace: "default"}}
	fault.Run(t, fault.Scenario{
		Name: "memcached",
		Operator: fault.Operator{
			CRDs: os.DirFS("../../config/crd/bases"), RBAC: os.DirFS("../../config/rbac"), AddToScheme: cachev1alpha1.AddToScheme,
			SetUp: func(mgr ctrl.Manager, _ *fault.Env) error {
				return (&MemcachedReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
			},
		},
		Actors: actors.All(),
		Steps: []fault.Step{
			fault.CreateFile("../../config/samples/cache_v1alpha1_memcached.yaml").Becomes(m, "Available"),
			fault.Merge(m, `{"spec":{"size":2}}`).Becomes(m, "Available").Has(deployment, `status: {readyReplicas: 2}`),
			fault.Delete(m).Gone(m),
		},
	})
}
