package karpenter

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/node/termination"
	"sigs.k8s.io/karpenter/pkg/controllers/node/termination/terminator"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/garbagecollection"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/lifecycle"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/nodepoolhealth"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/wild"
)

// setUpKarpenter is the part of its NewControllers and NewOperator that launches and terminates instances.
func setUpKarpenter(ctx context.Context, mgr ctrl.Manager, env *fault.Env) error {
	index := func(obj client.Object, field string, of func(client.Object) string) error {
		return mgr.GetFieldIndexer().IndexField(ctx, obj, field, func(o client.Object) []string { return []string{of(o)} })
	}
	for _, err := range []error{
		index(&corev1.Pod{}, "spec.nodeName", func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName }),
		index(&storagev1.VolumeAttachment{}, "spec.nodeName", func(o client.Object) string { return o.(*storagev1.VolumeAttachment).Spec.NodeName }),
		index(&corev1.Node{}, "spec.providerID", func(o client.Object) string { return o.(*corev1.Node).Spec.ProviderID }),
		index(&karpenter.NodeClaim{}, "status.providerID", func(o client.Object) string { return o.(*karpenter.NodeClaim).Status.ProviderID }),
		index(&karpenter.NodeClaim{}, "spec.nodeClassRef.group", func(o client.Object) string { return o.(*karpenter.NodeClaim).Spec.NodeClassRef.Group }),
		index(&karpenter.NodeClaim{}, "spec.nodeClassRef.kind", func(o client.Object) string { return o.(*karpenter.NodeClaim).Spec.NodeClassRef.Kind }),
	} {
		if err != nil {
			return err
		}
	}
	c, now, cloud := mgr.GetClient(), clock.RealClock{}, provider{env}
	recorder := events.NewRecorder(mgr.GetEventRecorderFor("karpenter")) //nolint:staticcheck // as Karpenter does
	queue := terminator.NewQueue(c, recorder)
	for _, controller := range []interface {
		Register(context.Context, manager.Manager) error
	}{
		queue,
		lifecycle.NewController(now, c, cloud, recorder, nodepoolhealth.NewState(), nil),
		garbagecollection.NewController(now, c, cloud),
		termination.NewController(now, c, cloud, terminator.NewTerminator(now, c, queue, recorder), recorder),
	} {
		if err := controller.Register(ctx, mgr); err != nil {
			return err
		}
	}
	return nil
}

func TestKarpenter(t *testing.T) {
	withOptions := func() context.Context {
		return options.ToContext(context.Background(), &options.Options{CPURequests: 1000})
	}
	nc := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "worker", Labels: map[string]string{"karpenter.test.sh/testnodeclass": "default"}}, Spec: karpenter.NodeClaimSpec{
		NodeClassRef: &karpenter.NodeClassReference{Group: "karpenter.test.sh", Kind: "TestNodeClass", Name: "default"},
		Requirements: []karpenter.NodeSelectorRequirementWithMinValues{{Key: "kubernetes.io/os", Operator: "In", Values: []string{"linux"}}},
	}}
	wild.Play(t, fault.Scenario{
		Name: "worker",
		Operator: fault.Operator{
			CRDs: fault.Module(t, "sigs.k8s.io/karpenter", "pkg/apis/crds", "pkg/test/v1alpha1/crds"),
			AddToScheme: func(s *runtime.Scheme) error {
				gv := schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}
				metav1.AddToGroupVersion(s, gv)
				s.AddKnownTypes(gv, &karpenter.NodeClaim{}, &karpenter.NodeClaimList{}, &karpenter.NodePool{}, &karpenter.NodePoolList{})
				return nil
			},
			Manager: manager.Options{BaseContext: withOptions},
			SetUp:   func(mgr ctrl.Manager, env *fault.Env) error { return setUpKarpenter(withOptions(), mgr, env) },
		},
		ExternalAPI: func() fault.ExternalAPI { return &cloud{instances: map[string]instance{}} },
		Actors:      []fault.Actor{{Name: "provider", Act: terminateOrphans}, {Name: "kubelet", Act: join}, {Name: "node controller", Act: followInstances}},
		Steps: []fault.Step{
			fault.Create(nc).Becomes(nc, "Ready"),
			fault.Delete(nc).Gone(nc),
		},
	}, 300,
		wild.Bug{Invariant: fault.I1, Says: `worker has 1 external resource of kind "instance", none if the user's delete comes before or after, and one more difference, at the end of step "create worker"`, Why: "a Node that is deleted while it registers leaves instance and NodeClaim behind"},
		wild.Bug{Invariant: fault.I1, Says: `worker has no external resources of kind "instance", 1 without the disturbance, and 2 more differences, at the end of step "create worker"`, Why: "an instance is known by the status alone: without it, it is replaced"},
		wild.Bug{Invariant: fault.I8, Says: "worker says Ready=True for generation 2, but at no time", Why: "Ready stays True while the instance is terminated"},
		wild.Bug{Invariant: fault.I9, Says: "of nodeclaims.karpenter.sh worker changed, its status did not: it is still True", Why: "a pass with an old copy writes all conditions again"},
	)
}
