package component_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/bundle"
)

// TestUnlabelled takes the label by which dependents are watched from an object at moments when it is not given
// back: to the watch, that is a deletion. The object is still the component's, and goes with it.
func TestUnlabelled(t *testing.T) {
	t.Parallel()
	t.Run("an object that leaves the manifests while no operator runs", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1"), configMap("two", "1"), configMap("three", "1"))
		b.ready()
		b.stop()
		b.unlabel("one")
		b.change(configMap("two", "1"), configMap("three", "1"))
		b.start()
		if b.ready(); has(t, b.admin, b.namespace, "one") {
			t.Error("the object is left")
		}
	})
	t.Run("a component that is deleted while no operator runs", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1"))
		b.ready()
		b.stop()
		b.unlabel("one")
		b.delete()
		b.start()
		if b.gone(); has(t, b.admin, b.namespace, "one") {
			t.Error("the object is left")
		}
	})
	t.Run("an object without its owner stays", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1"))
		b.ready()
		b.stop()
		b.unlabel("one")
		b.patch("v1", "ConfigMap", "one", fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, b.key("owner-id")))
		b.delete()
		b.start()
		if b.gone(); !has(t, b.admin, b.namespace, "one") {
			t.Error("the object is gone")
		}
	})
	t.Run("mode detect-only", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1"))
		b.ready()
		b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:"detect-only"}}}`, b.key("mode")))
		b.fence()
		b.unlabel("one")
		want := "ConfigMap " + b.namespace + "/one has lost the label by which it is watched"
		b.await(want, func(o *bundle.Bundle) bool {
			c := meta.FindStatusCondition(o.Status.Conditions, api.ConditionDrifted)
			return c != nil && c.Message == want
		})
		b.delete()
		if b.gone(); has(t, b.admin, b.namespace, "one") {
			t.Error("the object is left")
		}
	})
}

// unlabel takes the label by which it is watched from a ConfigMap.
func (b *bench) unlabel(name string) {
	b.t.Helper()
	b.patch("v1", "ConfigMap", name, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, b.key("owner-id")))
}
