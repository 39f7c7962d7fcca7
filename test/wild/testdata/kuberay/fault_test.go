package fault

import (
	"fmt"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray"
	"github.com/ray-project/kuberay/ray-operator/internal/managercache"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"
)

const (
	group = `{groupName: small, replicas: %d, minReplicas: 1, maxReplicas: 3, rayStartParams: {},
template: {spec: {containers: [{name: ray-worker, image: "rayproject/ray:2.52.0"}]}}}`
	cluster = `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: demo}, spec: {rayVersion: 2.52.0, headGroupSpec: {rayStartParams: {},
template: {spec: {containers: [{name: ray-head, image: "rayproject/ray:2.52.0"}]}}}, workerGroupSpecs: [` + group + `]}}`
	grown = `{"spec":{"workerGroupSpecs":[{"groupName":"small","replicas":2,"minReplicas":1,"maxReplicas":3,"rayStartParams":{},
"template":{"spec":{"containers":[{"name":"ray-worker","image":"rayproject/ray:2.52.0"}]}}}]}}`
	ready = `status: {state: ready, readyWorkerReplicas: %d}`
)

func TestRayCluster(t *testing.T) {
	byObject, err := managercache.K8sControllerRuntimeCacheSelectors()
	if err != nil {
		t.Fatal(err)
	}
	c := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	fault.Run(t, fault.Scenario{Name: "raycluster", Actors: actors.All(),
		Operator: fault.Operator{CRDs: os.DirFS("../../config/crd/bases"), RBAC: os.DirFS("../../config/rbac"), AddToScheme: rayv1.AddToScheme,
			Manager: ctrl.Options{Cache: cache.Options{ByObject: byObject}},
			SetUp: func(mgr ctrl.Manager, _ *fault.Env) error { // as main does, without RayJob and RayService
				return ray.NewReconciler(mgr, ray.RayClusterReconcilerOptions{}).SetupWithManager(mgr, 1)
			}},
		Steps: []fault.Step{fault.CreateYAML(fmt.Sprintf(cluster, 1)).Becomes(c, "RayClusterProvisioned").Has(c, fmt.Sprintf(ready, 1)),
			fault.Merge(c, grown).Has(c, fmt.Sprintf(ready, 2)), fault.Merge(c, `{"spec":{"suspend":true}}`).Becomes(c, "RayClusterSuspended"),
			fault.Delete(c).Gone(c)}})
}
