package component_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// extra is a kind that is not defined by a dependent, but belongs to the component by an option.
func (b *bench) extra() schema.GroupKind {
	return schema.GroupKind{Group: "extra." + b.namespace + ".example.org", Kind: "Extra"}
}

func (b *bench) extraOf(name string) *unstructured.Unstructured {
	return object(b.extra().Group+"/v1", b.extra().Kind, name, nil)
}

// newManagedBench has types of a component: Baz, if its definition is a dependent, and Extra by the option.
func newManagedBench(t *testing.T) *bench {
	t.Helper()
	b := prepareBench(t)
	b.options.PruneLimit = 1
	b.options.ManagedTypes = []api.TypeInfo{{Group: b.extra().Group, Kind: "*"}}
	testenv.Install(t, b.cfg, plain(b.extra()))
	b.withGauges().start()
	return b
}

// hold keeps an object that is deleted, or lets it go.
func (b *bench) hold(u *unstructured.Unstructured, is bool) {
	b.t.Helper()
	body := `{"metadata":{"finalizers":null}}`
	if is {
		body = `{"metadata":{"finalizers":["example.org/holds"]}}`
	}
	b.patch(u.GetAPIVersion(), u.GetKind(), u.GetName(), body)
}

// deleted reports whether the operator sent a request to delete something.
func (b *bench) deleted(resource, name string) bool {
	return slices.ContainsFunc(b.requests.Writes(resource, b.namespace, name), func(r testenv.Request) bool { return r.Verb == "delete" })
}

// TestManagedInstances: objects of types that the component adds to the API come last and go first.
func TestManagedInstances(t *testing.T) {
	t.Parallel()
	t.Run("postponed until what serves them is ready", func(t *testing.T) {
		t.Parallel()
		b := newManagedBench(t)
		server := gauge("server", b.key("status-hint"), "has-ready-condition")
		b.create(b.bazOf("ours"), b.extraOf("ours"), server, plain(b.baz()), configMap("one", "1"))
		b.awaits("Gauge server: it has condition Ready Unknown")
		b.fence()
		b.exists(b.crd())
		b.live("one")
		b.absent(b.in(b.extraOf("ours")))
		b.absent(b.in(b.bazOf("ours")))
		b.status(gauge("server"), `{"conditions":[{"type":"Ready","status":"True"}]}`)
		b.ready()
		b.exists(b.in(b.bazOf("ours")))
		b.exists(b.in(b.extraOf("ours")))
		b.delete()
		b.gone()
	})
	t.Run("pruned first", func(t *testing.T) {
		t.Parallel()
		b := newManagedBench(t)
		b.create(b.bazOf("ours"), b.extraOf("ours"), plain(b.baz()), configMap("server", "1"), configMap("one", "1"))
		b.ready()
		ours, extra := b.in(b.bazOf("ours")), b.in(b.extraOf("ours"))
		b.hold(ours, true)
		b.hold(extra, true)
		b.change(plain(b.baz()), configMap("one", "1"))
		b.await("both are being deleted", func(o *bundle.Bundle) bool {
			return containsAll(o.Status.Message, []string{"Baz " + b.namespace + "/ours", "Extra " + b.namespace + "/ours", "example.org/holds"})
		})
		b.fence()
		if b.deleted("configmaps", "server") {
			t.Error("what serves the instances was deleted while they exist")
		}
		b.hold(ours, false)
		b.hold(extra, false)
		b.ready()
		b.absent(b.named("server"))
		b.exists(b.crd())
		b.delete()
		b.gone()
	})
}

// TestRedundant: objects that left the manifests go in the order of their delete-orders, and as their policies say.
func TestRedundant(t *testing.T) {
	t.Parallel()
	t.Run("delete-orders", func(t *testing.T) {
		t.Parallel()
		b := newManagedBench(t)
		order := b.key("delete-order")
		b.create(configMap("stays", "1"), gauge("first", order, "-1"), configMap("second", "1"), configMap("third", "1", order, "5"))
		b.ready()
		b.hold(b.in(gauge("first")), true)
		b.change(configMap("stays", "2"), gauge("new", b.key("status-hint"), "has-ready-condition"))
		b.awaits("Gauge new: it has condition Ready Unknown")
		b.fence()
		if b.deleted("gauges", "first") {
			t.Error("redundant objects were deleted before all wanted ones were ready")
		}
		b.status(gauge("new"), `{"conditions":[{"type":"Ready","status":"True"}]}`)
		b.waiting("Gauge "+b.namespace+"/first", "example.org/holds")
		b.fence()
		if b.deleted("configmaps", "second") || b.deleted("configmaps", "third") {
			t.Error("objects of higher delete-orders were deleted before the first was gone")
		}
		b.hold(b.in(gauge("first")), false)
		b.ready()
		var sent []string
		for _, r := range b.requests.All() {
			if r.Verb == "delete" {
				sent = append(sent, r.Name)
			}
		}
		if want := []string{"first", "second", "third"}; !slices.Equal(sent, want) {
			t.Errorf("deleted %v, want %v", sent, want)
		}
	})
	t.Run("policies", func(t *testing.T) {
		t.Parallel()
		policies := []api.DeletePolicy{api.DeletePolicyDelete, api.DeletePolicyOrphan, api.DeletePolicyOrphanOnApply, api.DeletePolicyOrphanOnDelete}
		b := newManagedBench(t)
		set := func(prefix string) []client.Object {
			var out []client.Object
			for _, p := range policies {
				out = append(out, configMap(prefix+"-"+string(p), "1", b.key("delete-policy"), string(p)))
			}
			return out
		}
		b.create(append(set("redundant"), set("deleted")...)...)
		b.ready()
		b.change(set("deleted")...)
		inventory := b.await("four are left", func(o *bundle.Bundle) bool { return isReady(o) && len(o.Status.Inventory) == 4 }).Status.Inventory
		if len(inventory) != len(policies) {
			t.Errorf("inventory %v", inventory)
		}
		b.remains("redundant", api.DeletePolicyOrphan, api.DeletePolicyOrphanOnApply)
		b.delete()
		b.gone()
		b.remains("deleted", api.DeletePolicyOrphan, api.DeletePolicyOrphanOnDelete)
	})
}

// remains checks that of the ConfigMaps with a prefix those with these policies exist and are nobody's.
func (b *bench) remains(prefix string, policies ...api.DeletePolicy) {
	b.t.Helper()
	var list corev1.ConfigMapList
	if err := b.admin.List(b.t.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.t.Fatal(err)
	}
	var got, want []string
	for i := range list.Items {
		m := &list.Items[i]
		if !containsAll(m.Name, []string{prefix + "-"}) {
			continue
		}
		if got = append(got, m.Name); m.Labels[b.key("owner-id")] != "" || m.DeletionTimestamp != nil {
			b.t.Errorf("%s is not released: %v", m.Name, m.ObjectMeta)
		}
	}
	for _, p := range policies {
		want = append(want, prefix+"-"+string(p))
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("%v are left, want %v", got, want)
	}
}
