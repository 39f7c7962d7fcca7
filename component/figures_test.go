package component_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// manyMaps are n ConfigMaps, of which the first changed have another value.
func manyMaps(n, changed int) []client.Object {
	var out []client.Object
	for i := range n {
		value := "1"
		if i < changed {
			value = "2"
		}
		out = append(out, configMap(fmt.Sprintf("m-%03d", i), value))
	}
	return out
}

// TestFigures counts the requests of a component with 200 dependents.
func TestFigures(t *testing.T) {
	t.Parallel()
	passes := &delays{}
	b := newBench(t, func(o *options) { o.Loop.Trace, o.RequeueInterval = passes, time.Hour })
	began := time.Now()
	var work time.Duration
	spent := func(t *testing.T, want counts) {
		t.Helper()
		if diff := cmp.Diff(want, b.sent()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
			for _, r := range b.requests.Select(func(r testenv.Request) bool { return r.Resource == "bundles" }) {
				t.Logf("%s %s", r, r.Body)
			}
		}
		b.requests.Reset()
	}
	t.Run("B-4 install of 200 and change of 7", func(t *testing.T) {
		b.create(manyMaps(200, 0)...)
		b.ready()
		work = time.Since(began)
		spent(t, counts{Dependents: 200, Component: 3})
		b.change(manyMaps(200, 7)...)
		b.ready()
		spent(t, counts{Dependents: 7, Component: 1})
	})
	t.Run("W1 edits and deletions are corrected with one write each within 2 s", func(t *testing.T) {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "m-100"}}
		began = time.Now()
		b.patch("v1", "ConfigMap", m.Name, `{"data":{"value":"edited"}}`)
		testenv.Wait(t, b.admin, m.DeepCopy(), "the edit is corrected", func(m *corev1.ConfigMap) bool { return m.Data["value"] == "1" })
		passes.prompt(t, time.Since(began), work)
		b.fence()
		spent(t, counts{Dependents: 1, Component: fence})

		before := b.live(m.Name)
		began = time.Now()
		if err := b.admin.Delete(t.Context(), before.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		testenv.Wait(t, b.admin, m.DeepCopy(), "it is created again", func(m *corev1.ConfigMap) bool { return m.UID != before.UID && m.Data["value"] == "1" })
		passes.prompt(t, time.Since(began), work)
		b.fence()
		spent(t, counts{Dependents: 1, Component: fence})
	})
}

// TestInventoryLost: the status of a component is wiped, and its inventory found again.
func TestInventoryLost(t *testing.T) {
	t.Parallel()
	configMaps := []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Secret")}
	b := newBench(t, func(o *options) { o.Kinds = configMaps })
	stays := b.operator + "/delete-policy"
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "old"},
		StringData: map[string]string{"a": "b"},
	}
	b.create(configMap("one", "1"), configMap("two", "1", stays, "orphan"), secret)
	inventory := b.ready().Status.Inventory
	wipe := func() {
		b.stop()
		obj := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}}
		patch := []byte(`{"status":null}`)
		if err := b.admin.Status().Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
		b.requests.Reset()
	}
	t.Run("rebuilt without a write to any dependent", func(t *testing.T) {
		wipe()
		b.start()
		now := b.ready().Status.Inventory
		for i := range now { // the values of what is watched without them are not known
			now[i].Fingerprint, inventory[i].Fingerprint = "", ""
		}
		if diff := cmp.Diff(inventory, now); diff != "" {
			t.Errorf("inventory (-before +after):\n%s", diff)
		}
		if got := b.sent(); got.Dependents > 0 || len(got.Reads) > 0 {
			t.Errorf("%s, want none", got)
		}
	})
	t.Run("what is not rendered any more goes", func(t *testing.T) {
		wipe()
		b.change(configMap("one", "1"), configMap("two", "1", stays, "orphan"))
		b.start()
		b.ready()
		testenv.Gone(t, b.admin, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "old"}}, "pruned")
	})
	t.Run("a deletion leaves nothing but what is to stay", func(t *testing.T) {
		wipe()
		b.delete()
		b.start()
		b.gone()
		testenv.Gone(t, b.admin, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "one"}}, "deleted")
		if owner := b.live("two").Annotations[b.operator+"/owner-id"]; owner != "" {
			t.Errorf("what is to stay has the owner %q, want none", owner)
		}
	})
}

// TestAllowed: kinds and namespaces that the operator may not touch.
func TestAllowed(t *testing.T) {
	t.Parallel()
	t.Run("B-42 kinds and namespaces outside the lists are refused before any write", func(t *testing.T) {
		b := newBench(t, func(o *options) {
			o.Kinds = []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")}
			o.Within = []string{"elsewhere"}
		})
		secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s"}}
		outside := configMap("c", "1")
		outside.Namespace = "kube-public"
		b.create(configMap("one", "1"), secret, outside)
		got := b.await("refused", func(o *bundle.Bundle) bool { return o.Status.State == component.StateError }).Status.Message
		for _, want := range []string{"Secret " + b.namespace + "/s", "Options.Kinds", "ConfigMap kube-public/c", "Options.Within"} {
			if !strings.Contains(got, want) {
				t.Errorf("message %q does not name %q", got, want)
			}
		}
		if got := b.sent(); got.Dependents > 0 {
			t.Errorf("%s, want no write of dependents", got)
		}
		b.change(configMap("one", "1"))
		b.ready()
	})
}

// TestFollowsSpec: the dependents follow the spec of their component.
func TestFollowsSpec(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	t.Run("004-30 create, update and delete", func(t *testing.T) {
		b.create(configMap("kept", "1"), configMap("changed", "1"), configMap("removed", "1"))
		b.ready()
		kept := b.live("kept")
		b.change(configMap("kept", "1"), configMap("changed", "2"), configMap("added", "1"))
		b.ready()
		if now := b.live("kept"); now.UID != kept.UID || now.ResourceVersion != kept.ResourceVersion {
			t.Error("an object that did not change was written")
		}
		if got := b.live("changed").Data["value"] + b.live("added").Data["value"]; got != "21" {
			t.Errorf("values %q, want 21", got)
		}
		gone := func(name string) {
			t.Helper()
			testenv.Gone(t, b.admin, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}, "deleted")
		}
		gone("removed")
		b.delete()
		b.gone()
		for _, name := range []string{"kept", "changed", "added"} {
			var m corev1.ConfigMap
			if err := b.admin.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, &m); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("%s outlived its component: %v", name, err)
			}
		}
	})
}
