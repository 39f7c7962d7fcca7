package component_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/testenv"
)

// patchPlaced changes a component as a user would.
func (b *placedBench) patchPlaced(name, body string) {
	b.t.Helper()
	obj := &placed{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	if err := b.admin.Patch(b.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		b.t.Fatal(err)
	}
}

// otherCluster changes the kubeconfig of a component to one for another cluster.
func otherCluster(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, testenv.Start(t))
	there := testenv.Namespace(t, s.cfg)
	if err := b.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: there}}); err != nil {
		t.Fatal(err)
	}
	remote := kubeconfig(t, testenv.User(t, s.cfg, everything()))
	b.secret("there", remote)
	b.component("a", there, from("there"))
	obj := b.ready("a")
	inventory := obj.Status.Inventory
	if obj.Status.Cluster == "" || len(inventory) != 1 {
		t.Fatalf("the status says cluster %q and has %d dependents", obj.Status.Cluster, len(inventory))
	}
	b.secret("there", kubeconfig(t, testenv.User(t, testenv.Start(t), everything())))
	consent := fmt.Sprintf("set %s/left-behind: %s", b.operator, obj.Status.Cluster)
	b.says("a", consent)
	if has(t, b.admin, there, "a") || !has(t, s.admin, there, "a") {
		t.Error("it went on in the other cluster")
	}
	b.secret("there", remote) // back
	b.await("a", "ready again", func(p *placed) bool { return !strings.Contains(p.Status.Message, "left-behind") })
	if now := b.ready("a"); len(now.Status.Inventory) != 1 || now.Status.Inventory[0].UID != inventory[0].UID {
		t.Errorf("the inventory was %v and is %v", inventory, now.Status.Inventory)
	}

	b.secret("there", kubeconfig(t, testenv.User(t, testenv.Start(t), everything())))
	b.says("a", consent)
	b.patchPlaced("a", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, b.operator+"/left-behind", obj.Status.Cluster))
	b.await("a", "at home in the other cluster", func(p *placed) bool { return p.Status.Cluster == "" && len(p.Status.Inventory) == 1 })
	b.ready("a")
	if !has(t, b.admin, there, "a") || !has(t, s.admin, there, "a") {
		t.Error("want one object in each cluster: the old one was to be left")
	}
	b.delete("a")
	b.gone("a")
	if has(t, b.admin, there, "a") || !has(t, s.admin, there, "a") {
		t.Error("want the object in the second cluster to be gone, and the other one to be left")
	}
}

// unknownCluster changes the kubeconfig of a component to one whose user may not ask which cluster it is for, and
// from that one to another.
func unknownCluster(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, testenv.Start(t))
	there := testenv.Namespace(t, s.cfg)
	if err := b.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: there}}); err != nil {
		t.Fatal(err)
	}
	blind := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}
	b.secret("former", kubeconfig(t, testenv.User(t, s.cfg, everything())))
	b.secret("blind", kubeconfig(t, testenv.User(t, testenv.Start(t), blind)))
	b.component("a", there, from("former"))
	b.ready("a")
	b.patchPlaced("a", `{"spec":{"kubeConfig":{"secretRef":{"name":"blind"}}}}`)
	b.says("a", "it is not known for which one the kubeconfig is")
	if has(t, b.admin, there, "a") {
		t.Error("it went on in the other cluster")
	}
	b.patchPlaced("a", `{"spec":{"kubeConfig":{"secretRef":{"name":"former"}}}}`)
	b.ready("a")

	b.component("b", there, from("blind"))
	if obj := b.ready("b"); obj.Status.Cluster != "unknown" {
		t.Errorf("the status says cluster %q, want unknown", obj.Status.Cluster)
	}
	b.patchPlaced("b", `{"spec":{"kubeConfig":{"secretRef":{"name":"former"}}}}`)
	b.says("b", "left-behind")
	if has(t, s.admin, there, "b") {
		t.Error("it went on in the other cluster")
	}
}

// otherClusterDeletion deletes a component whose kubeconfig is for another cluster than its dependents.
func otherClusterDeletion(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, testenv.Start(t))
	there := testenv.Namespace(t, s.cfg)
	b.secret("there", kubeconfig(t, testenv.User(t, s.cfg, everything())))
	b.component("a", there, from("there"))
	was := b.ready("a").Status.Cluster
	b.secret("there", kubeconfig(t, testenv.User(t, testenv.Start(t), everything())))
	b.says("a", "left-behind")
	b.delete("a")
	b.await("a", "refused", func(p *placed) bool {
		return p.DeletionTimestamp != nil && strings.Contains(p.Status.Message, "left-behind") && len(p.Status.Inventory) == 1
	})
	b.patchPlaced("a", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, b.operator+"/left-behind", was))
	b.gone("a")
	if !has(t, s.admin, there, "a") {
		t.Error("what was to be left was deleted")
	}
}

// otherClusterFunction: what is in no cluster stays recorded when dependents are left in one.
func otherClusterFunction(t *testing.T, s *site) {
	t.Helper()
	var calls atomic.Int32
	b := newPlacedBench(t, testenv.Start(t), func(b *placedBench) {
		b.setup = func(mgr ctrl.Manager) error {
			render := func(ctx context.Context, r component.RenderRequest[*placed]) (component.Set, error) {
				set, err := renderPlaced(ctx, r)
				set.Do("migrate", "1", func(context.Context) error { calls.Add(1); return nil })
				return set, err
			}
			return component.New(component.RenderFunc[*placed](render), b.options).SetupWithManager(mgr)
		}
	})
	there := testenv.Namespace(t, s.cfg)
	if err := b.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: there}}); err != nil {
		t.Fatal(err)
	}
	b.secret("there", kubeconfig(t, testenv.User(t, s.cfg, everything())))
	b.component("a", there, from("there"))
	was := b.ready("a").Status.Cluster
	b.secret("there", kubeconfig(t, testenv.User(t, testenv.Start(t), everything())))
	b.says("a", "left-behind")
	b.patchPlaced("a", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, b.operator+"/left-behind", was))
	b.await("a", "at home in the other cluster", func(p *placed) bool { return p.Status.Cluster == "" && len(p.Status.Inventory) == 2 })
	b.ready("a")
	if n := calls.Load(); n != 1 {
		t.Errorf("the function was called %d times, want once", n)
	}
	if !has(t, b.admin, there, "a") || !has(t, s.admin, there, "a") {
		t.Error("want one object in each cluster")
	}
}
