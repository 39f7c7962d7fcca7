package fault

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOrphans proves that the options of an operator's delete reach the server, whatever client it uses: an object goes without
// its dependents.
func TestOrphans(t *testing.T) {
	owner, orphan := configMap("a"), configMap("b")
	tests := map[string]func(ctx context.Context, mgr ctrl.Manager, cm *corev1.ConfigMap) error{
		"controller-runtime": func(ctx context.Context, mgr ctrl.Manager, cm *corev1.ConfigMap) error {
			return mgr.GetClient().Delete(ctx, cm, client.PropagationPolicy(metav1.DeletePropagationOrphan))
		},
		"client-go": func(ctx context.Context, mgr ctrl.Manager, cm *corev1.ConfigMap) error {
			c, err := kubernetes.NewForConfig(mgr.GetConfig())
			if err != nil {
				return err
			}
			policy := metav1.DeletePropagationOrphan
			return c.CoreV1().ConfigMaps(cm.Namespace).Delete(ctx, cm.Name, metav1.DeleteOptions{PropagationPolicy: &policy})
		},
	}
	for name, remove := range tests {
		t.Run(name, func(t *testing.T) {
			Explore(t, Scenario{
				Name: name, Races: []Step{},
				Operator: Operator{SetUp: func(mgr ctrl.Manager, env *Env) error {
					return configMaps(func(ctx context.Context, _ client.Client, cm *corev1.ConfigMap) error {
						if cm.Annotations["remove"] == "" || cm.DeletionTimestamp != nil {
							return nil
						}
						return client.IgnoreNotFound(remove(ctx, mgr, cm))
					})(mgr, env)
				}},
				Steps: []Step{
					Create(owner),
					{Name: "create b of a", Do: func(ctx context.Context, w *World) error {
						a, b := &corev1.ConfigMap{}, orphan.DeepCopy()
						if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, a); err != nil {
							return err
						}
						b.Namespace, b.OwnerReferences = "default", []metav1.OwnerReference{*metav1.NewControllerRef(a, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
						return w.Client.Create(ctx, b)
					}},
					Merge(owner, `{"metadata":{"annotations":{"remove":"yes"}}}`).Gone(owner).Expecting(func(ctx context.Context, w *World) error {
						b := &corev1.ConfigMap{}
						if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "b"}, b); err != nil {
							return err
						}
						if len(b.OwnerReferences) > 0 || b.DeletionTimestamp != nil {
							return fmt.Errorf("b is not free: %v, deleted at %v", b.OwnerReferences, b.DeletionTimestamp)
						}
						return nil
					}),
				},
			}, Only(Duplicates))
		})
	}
}
