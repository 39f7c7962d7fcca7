package manager

import (
	"errors"
	"os"
	"testing"

	rvb2 "github.com/OT-CONTAINER-KIT/redis-operator/api/redis/v1beta2"
	rcvb2 "github.com/OT-CONTAINER-KIT/redis-operator/api/rediscluster/v1beta2"
	rrvb2 "github.com/OT-CONTAINER-KIT/redis-operator/api/redisreplication/v1beta2"
	rsvb2 "github.com/OT-CONTAINER-KIT/redis-operator/api/redissentinel/v1beta2"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
)

func setUp(mgr ctrl.Manager, _ *fault.Env) error {
	k8sClient, err := kubernetes.NewForConfig(mgr.GetConfig())
	return errors.Join(err, setupControllers(mgr, k8sClient, 3)) // no webhooks: config/manager disables them
}

func TestRedisFaults(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "redis-standalone", Namespace: "default"}
	redis, pods := &rvb2.Redis{ObjectMeta: meta}, &appsv1.StatefulSet{ObjectMeta: meta}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "redis-standalone-redis-standalone-0", Namespace: "default"}}
	const running = `{spec: {template: {spec: {containers: [{image: "quay.io/opstree/redis:v8"}, {name: redis-exporter}]}}}, status: {readyReplicas: 1, updatedReplicas: 1}}`
	fault.Run(t, fault.Scenario{
		Name: "redis",
		Operator: fault.Operator{
			CRDs: os.DirFS("../../../config/crd/bases"),
			RBAC: fault.Paths("../../../config/rbac/role.yaml"), // the bindings beside it name it with kustomize's prefix
			AddToScheme: func(s *runtime.Scheme) error {
				return errors.Join(rvb2.AddToScheme(s), rcvb2.AddToScheme(s), rrvb2.AddToScheme(s), rsvb2.AddToScheme(s))
			},
			SetUp: setUp, Ignored: []string{"metadata.annotations.banzaicloud.com/last-applied"}, // zipped, with times
		},
		Actors: actors.All(),
		Steps: []fault.Step{
			fault.CreateFile("../../../example/v1beta2/redis-standalone.yaml").Has(pods, `status: {readyReplicas: 1}`),
			fault.Merge(redis, `{"spec":{"kubernetesConfig":{"image":"quay.io/opstree/redis:v8"},"redisExporter":{"enabled":true}}}`).Has(pods, running),
			fault.Merge(redis, `{"spec":{"storage":{"volumeClaimTemplate":{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}}}}`).
				Has(pods, running).Has(claim, `spec: {resources: {requests: {storage: 2Gi}}}`),
			fault.Delete(redis).Gone(redis).Gone(claim),
		},
	})
}
