package component_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// replaced has component "a" go without its dependents, as with a cluster whose backup is restored, and
// creates it again with another UID. It returns the UIDs before and after.
func (b *bench) replaced(withStatus bool) (before, after types.UID) {
	b.t.Helper()
	old := b.ready()
	b.stop()
	b.patch("bundles.trimtab.dev/v1", "Bundle", "a", `{"metadata":{"finalizers":null}}`)
	b.delete()
	b.gone()
	now := old.DeepCopy()
	now.ObjectMeta = metav1.ObjectMeta{Namespace: old.Namespace, Name: old.Name}
	if err := b.admin.Create(b.t.Context(), now); err != nil {
		b.t.Fatal(err)
	}
	if withStatus {
		now.Status = old.Status
		if err := b.admin.Status().Update(b.t.Context(), now); err != nil {
			b.t.Fatal(err)
		}
	}
	b.requests.Reset()
	b.start()
	return old.UID, now.UID
}

// TestRestored: a component that was restored from a backup has another UID than its dependents know.
func TestRestored(t *testing.T) {
	t.Parallel()
	for how, withStatus := range map[string]bool{"without its status": false, "with its status": true} {
		t.Run("B-10 a component with another UID, "+how, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(o *options) {
				o.Kinds = []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")}
			})
			b.create(configMap("one", "1"), configMap("two", "1"))
			b.ready()
			one, two := b.live("one"), b.live("two")
			before, after := b.replaced(withStatus)
			said := b.await("refused", func(o *bundle.Bundle) bool {
				return o.Status.State == component.StateError && strings.Contains(o.Status.Message, "ConfigMap "+b.namespace+"/two")
			}).Status.Message
			if want := b.key("restored-from") + ": " + string(before); !strings.Contains(said, want) {
				t.Errorf("message %q does not say %q", said, want)
			}
			for _, m := range []*corev1.ConfigMap{one, two} {
				if now := b.live(m.Name); now.UID != m.UID || now.ResourceVersion != m.ResourceVersion {
					t.Errorf("%s was touched without permission", m.Name)
				}
			}
			b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, b.key("restored-from"), before))
			b.ready()
			for _, m := range []*corev1.ConfigMap{one, two} {
				now := b.live(m.Name)
				if now.UID != m.UID {
					t.Errorf("%s was created again", m.Name)
				}
				if owner := now.Annotations[b.key("owner-id")]; !strings.Contains(owner, string(after)) {
					t.Errorf("owner %q of %s does not name the UID of its component, %s", owner, m.Name, after)
				}
			}
			b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, b.key("restored-from")))
			b.fence()
			b.ready()
			b.delete()
			b.gone()
			testenv.Gone(t, b.admin, b.named("one"), "deleted with its new component")
		})
	}
	t.Run("a component that is gone for good leaves what it had", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1"))
		one := func() *corev1.ConfigMap { return b.live("one") }
		b.ready()
		before := one()
		b.replaced(true)
		b.await("refused", func(o *bundle.Bundle) bool { return o.Status.State == component.StateError })
		b.delete()
		b.gone()
		if now := one(); now.UID != before.UID || now.DeletionTimestamp != nil {
			t.Error("a component deleted what belongs to an earlier one of its name")
		}
	})
	t.Run("a component under another name", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1"))
		b.ready()
		before := b.live("one")
		b.createAs("renamed", configMap("one", "1"))
		said := testenv.Wait(t, b.admin, &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "renamed"}}, "refused",
			func(o *bundle.Bundle) bool { return o.Status.State == component.StateError }).Status.Message
		if want := "belongs to "; !strings.Contains(said, want) || !strings.Contains(said, b.namespace+"/a") {
			t.Errorf("message %q does not name the owner", said)
		}
		if now := b.live("one"); now.UID != before.UID || now.ResourceVersion != before.ResourceVersion {
			t.Error("it was touched")
		}
	})
}
