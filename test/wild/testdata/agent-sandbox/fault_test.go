package main

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"
	"sigs.k8s.io/agent-sandbox/api/v1alpha1"
	"sigs.k8s.io/agent-sandbox/api/v1beta1"
	"sigs.k8s.io/agent-sandbox/controllers"
	asmetrics "sigs.k8s.io/agent-sandbox/internal/metrics"
)

const sandbox = `
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: {name: dev}
spec:
  service: true
  podTemplate: {spec: {containers: [{name: main, image: busybox, ports: [{containerPort: 8080}]}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
`

func TestSandboxFaults(t *testing.T) {
	cacheOpts, err := buildCacheOptions(false)
	if err != nil {
		t.Fatal(err)
	}
	s := &v1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: "dev", Namespace: "default"}}
	fault.Run(t, fault.Scenario{
		Name: "sandbox",
		Operator: fault.Operator{
			CRDs: os.DirFS("../../k8s/crds"), RBAC: fault.Paths("../../k8s/rbac.generated.yaml"),
			AddToScheme: func(s *runtime.Scheme) error { _ = v1alpha1.AddToScheme(s); return v1beta1.AddToScheme(s) },
			Manager:     manager.Options{Cache: cacheOpts},
			SetUp: func(mgr ctrl.Manager, _ *fault.Env) error {
				if err := (&controllers.SandboxReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme(), ClusterDomain: "cluster.local",
					Recorder: mgr.GetEventRecorder("sandbox-controller"), Tracer: asmetrics.NewNoOp()}).SetupWithManager(mgr, 1); err != nil {
					return err
				}
				return ctrl.NewWebhookManagedBy(mgr, &v1beta1.Sandbox{}).Complete()
			},
		},
		Actors: actors.All(),
		Steps: []fault.Step{
			fault.CreateYAML(sandbox).Becomes(s, "Ready"),
			fault.Merge(s, `{"spec":{"operatingMode":"Suspended"}}`).Becomes(s, "Suspended"),
			fault.Merge(s, `{"spec":{"operatingMode":"Running"}}`).Becomes(s, "Ready"),
			fault.Delete(s).Gone(s),
		},
	})
}
