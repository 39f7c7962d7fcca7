package component_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/testenv"
)

// TestLifecycle: one object is installed, changed, drifts, is deleted by others and goes with its
// component, each at the least number of requests.
func TestLifecycle(t *testing.T) {
	b := newBench(t)
	spent := func(t *testing.T, want counts) {
		t.Helper()
		if diff := cmp.Diff(want, b.sent()); diff != "" {
			t.Errorf("requests (-want +got):\n%s\n%s", diff, b.requests)
		}
		b.requests.Reset()
	}
	b.create(configMap("one", "1"))
	b.ready()
	if got := b.live("one").Data["value"]; got != "1" {
		t.Errorf("installed %q, want 1", got)
	}
	spent(t, counts{Dependents: 1, Component: 3})

	b.change(configMap("one", "2"))
	b.ready()
	if got := b.live("one").Data["value"]; got != "2" {
		t.Errorf("changed to %q, want 2", got)
	}
	spent(t, counts{Dependents: 1, Component: 1})

	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "one"}}
	b.patch("v1", "ConfigMap", "one", `{"data":{"value":"3"}}`)
	testenv.Wait(t, b.admin, one.DeepCopy(), "the edit is corrected", func(m *corev1.ConfigMap) bool { return m.Data["value"] == "2" })
	b.fence()
	spent(t, counts{Dependents: 1, Component: fence})

	before := b.live("one")
	if err := b.admin.Delete(t.Context(), before.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, b.admin, one.DeepCopy(), "it is created again", func(m *corev1.ConfigMap) bool { return m.UID != before.UID && m.Data["value"] == "2" })
	b.fence()
	spent(t, counts{Dependents: 1, Component: fence})

	b.delete()
	b.gone()
	testenv.Gone(t, b.admin, one.DeepCopy(), "deleted with its component")
	spent(t, counts{Dependents: 1, Component: 1})
}
