package capi

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/wild"
)

func TestClusterResourceSet(t *testing.T) {
	const settings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}, data: {key: a}}` // in the cluster
	addons := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "addons"}, Data: map[string]string{"settings": settings}}
	selected := map[string]string{"cni": "x"}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: selected}, Spec: clusterv1.ClusterSpec{Paused: new(false)}}
	crs := &addonsv1.ClusterResourceSet{ObjectMeta: metav1.ObjectMeta{Name: "cni"}, Spec: addonsv1.ClusterResourceSetSpec{
		Strategy: "Reconcile", ClusterSelector: metav1.LabelSelector{MatchLabels: selected}, Resources: []addonsv1.ResourceRef{{Kind: "ConfigMap", Name: "addons"}},
	}}
	wild.Play(t, fault.Scenario{
		Name: "cni",
		Operator: fault.Operator{
			CRDs:        fault.Module(t, "sigs.k8s.io/cluster-api", "config/crd/bases"),
			AddToScheme: func(s *runtime.Scheme) error { return errors.Join(clusterv1.AddToScheme(s), addonsv1.AddToScheme(s)) },
			Manager:     ctrl.Options{Client: client.Options{Cache: &client.CacheOptions{Unstructured: true, DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}}}},
			SetUp: func(mgr ctrl.Manager, _ *fault.Env) error {
				secrets, err := cache.New(mgr.GetConfig(), cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
				if err != nil {
					return err
				}
				ctx, c := t.Context(), mgr.GetClient()
				workload := clustercache.NewFakeClusterCache(c, client.ObjectKey{Namespace: "default", Name: "shop"}) // the same cluster
				return errors.Join(mgr.Add(secrets),
					(&controllers.ClusterResourceSetReconciler{Client: c, ClusterCache: workload}).SetupWithManager(ctx, mgr, controller.Options{}, secrets),
					(&controllers.ClusterResourceSetBindingReconciler{Client: c}).SetupWithManager(ctx, mgr, controller.Options{}))
			},
		},
		Steps: []fault.Step{
			fault.Create(addons), fault.Create(cluster), fault.Create(crs).Becomes(crs, "ResourcesApplied"),
			fault.Merge(addons, `{"data":{"settings":"`+strings.ReplaceAll(settings, "key: a", "key: b")+`"}}`).Becomes(crs, "ResourcesApplied"),
			fault.Delete(crs).Gone(crs),
		},
	}, 300,
		wild.Bug{Invariant: fault.I1, Says: "status.observedGeneration of ClusterResourceSet default/cni is missing", Why: "after a failed pass with the right conditions, the successful one writes nothing"},
		wild.Bug{Invariant: fault.I7, Says: "default/cni became 2; the generation of the object that was created again is 1", Then: "default/cni went back from 2 to 1", Why: "a status without UID is written onto the successor"},
		wild.Bug{Invariant: fault.I17, Says: "left 2 goroutines behind, started by sigs.k8s.io/cluster-api/util/cache.New", Why: "each controller's cache has a goroutine that never ends"},
	)
}
