package component_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// absent fails the test if an object exists.
func (b *bench) absent(obj client.Object) {
	b.t.Helper()
	if err := b.admin.Get(b.t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
		b.t.Errorf("%T %s: %v, want none", obj, obj.GetName(), err)
	}
}

// phase is the phase of a dependent in the inventory.
func phase(o *bundle.Bundle, name string) api.Phase {
	i := slices.IndexFunc(o.Status.Inventory, func(i api.InventoryItem) bool { return i.Name == name })
	if i < 0 {
		return ""
	}
	return o.Status.Inventory[i].Phase
}

// waiting waits until the component "a" says that it waits for something.
func (b *bench) waiting(parts ...string) *bundle.Bundle {
	b.t.Helper()
	return b.await("waiting for "+strings.Join(parts, ", "), func(o *bundle.Bundle) bool {
		return (o.Status.State == component.StateProcessing || o.Status.State == component.StateDeleting) &&
			o.Status.ObservedGeneration == o.Generation && containsAll(o.Status.Message, parts)
	})
}

func TestWaves(t *testing.T) {
	t.Parallel()
	t.Run("004-80 apply-order", func(t *testing.T) {
		t.Parallel()
		b := newBench(t).withTasks()
		order := b.key("apply-order")
		b.create(task("last", order, "7"), task("first", order, "-5"), task("middle"), configMap("with-last", "1", order, "7"))
		b.waiting("Task " + b.namespace + "/first")
		b.absent(b.task("middle"))
		b.absent(b.task("last"))
		b.finish("first", true)
		b.waiting("Task " + b.namespace + "/middle")
		b.absent(b.task("last"))
		b.absent(b.named("with-last"))
		b.finish("middle", true)
		b.finish("last", true)
		b.ready()
		for _, wrong := range []string{"32768", "-32769", "1.5", "x"} {
			b.requests.Reset()
			b.change(configMap("new", "1", order, wrong), configMap("other", "1"))
			b.failed(order, fmt.Sprintf("%q", wrong), "a whole number from -32768 to 32767")
			if sent := b.sent(); sent.Dependents != 0 {
				t.Errorf("%s: %v", wrong, sent)
			}
		}
	})
	t.Run("004-80 equal orders", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(service("s", "1"), configMap("c", "1"), role("r"))
		b.ready()
		var sent []string
		for _, r := range b.requests.Select(func(r testenv.Request) bool { return r.IsWrite() && r.Resource != "bundles" && r.Resource != "events" }) {
			sent = append(sent, r.Resource)
		}
		if want := []string{"roles", "configmaps", "services"}; !slices.Equal(sent, want) {
			t.Errorf("written in the order %v, want %v", sent, want)
		}
	})
	t.Run("004-81 W14 a wave that turns unready holds the next", func(t *testing.T) {
		t.Parallel()
		b := newBench(t).withTasks()
		order := b.key("apply-order")
		all := []client.Object{task("one"), task("two", order, "3"), task("three", order, "7")}
		b.create(all...)
		b.finish("one", true)
		b.waiting("Task " + b.namespace + "/two")
		b.finish("one", false)
		b.waiting("Task " + b.namespace + "/one")
		b.finish("two", true)
		b.fence()
		b.absent(b.task("three"))
		b.finish("one", true)
		b.finish("three", true)
		b.ready()
	})
}

func TestPurge(t *testing.T) {
	t.Parallel()
	t.Run("004-82 purge-order", func(t *testing.T) {
		t.Parallel()
		b := newBench(t).withTasks()
		order, purge := b.key("apply-order"), b.key("purge-order")
		set := func(command string) []client.Object {
			job := task("job", order, "1", purge, "1")
			job.Object["spec"] = map[string]any{"command": command}
			return []client.Object{
				job, task("beside", order, "1"), task("long", order, "1", purge, "3"),
				task("two", order, "2"), task("three", order, "3"), configMap("four", "1", order, "4"),
			}
		}
		b.create(set("x")...)
		b.finish("job", true)
		b.finish("long", true)
		b.waiting("Task " + b.namespace + "/beside")
		b.fence()
		live := b.exists(b.task("job"))
		b.finish("beside", true)
		testenv.Gone(t, b.admin, b.task("job"), "its wave ended")
		b.finish("two", true)
		b.waiting("Task " + b.namespace + "/three")
		b.exists(b.task("long")) // until wave 3 ends
		b.absent(b.named("four"))
		b.finish("three", true)
		testenv.Gone(t, b.admin, b.task("long"), "wave 3 ended")
		done := b.ready()
		if phase(done, "job") != api.PhaseCompleted || phase(done, "long") != api.PhaseCompleted {
			t.Errorf("inventory %v, want job and long Completed", done.Status.Inventory)
		}
		b.fence()
		b.absent(b.task("job"))

		b.change(set("y")...)
		again := b.exists(b.task("job"))
		if again.GetUID() == live.GetUID() {
			t.Error("it was not created again")
		}
		b.absent(b.task("long"))
		b.finish("job", true)
		testenv.Gone(t, b.admin, b.task("job"), "done again")
		b.ready()
		b.delete()
		b.gone()
	})
}

func TestDeleteOrder(t *testing.T) {
	t.Parallel()
	for how, prune := range map[string]bool{"pruning": true, "deletion": false} {
		t.Run("004-83 delete-order/"+how, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			var all []client.Object
			for i, name := range []string{"one", "two", "three"} {
				m := configMap(name, "1", b.key("delete-order"), fmt.Sprint(i-1), b.key("apply-order"), fmt.Sprint(i))
				m.Finalizers = []string{"example.org/holds"}
				all = append(all, m)
			}
			stays := []client.Object{configMap("a", "1"), configMap("b", "1"), configMap("c", "1"), configMap("d", "1")}
			b.create(slices.Concat(stays, all)...)
			b.ready()
			if prune {
				b.change(stays...)
			} else {
				b.delete()
			}
			for i, name := range []string{"one", "two", "three"} {
				testenv.Wait(t, b.admin, b.named(name), "being deleted", func(m *corev1.ConfigMap) bool { return m.DeletionTimestamp != nil })
				b.waiting("ConfigMap "+b.namespace+"/"+name, "example.org/holds")
				for _, later := range []string{"one", "two", "three"}[i+1:] {
					if b.live(later).DeletionTimestamp != nil {
						t.Errorf("%s is being deleted before %s is gone", later, name)
					}
				}
				b.patch("v1", "ConfigMap", name, `{"metadata":{"finalizers":null}}`)
				testenv.Gone(t, b.admin, b.named(name), "let go")
			}
			if prune {
				b.ready()
				b.live("a")
				return
			}
			b.gone()
			b.absent(b.named("a"))
		})
	}
}

func role(name string) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
	}
}
