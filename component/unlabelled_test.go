package component_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/bundle"
)

// TestUnlabelled takes the label by which dependents are watched from an object at moments when it is not given
// back: to the watch, that is a deletion. The object is still the component's, and goes with it.
func TestUnlabelled(t *testing.T) {
	t.Parallel()
	t.Run("an object that leaves the manifests while no operator runs", func(t *testing.T) {
		t.Parallel()
		b := unlabelledBench(t, "one", "two", "three")
		b.change(configMap("two", "1"), configMap("three", "1"))
		b.start()
		if b.ready(); has(t, b.admin, b.namespace, "one") {
			t.Error("the object is left")
		}
	})
	t.Run("a component that is deleted while no operator runs", func(t *testing.T) {
		t.Parallel()
		b := unlabelledBench(t, "one")
		b.delete()
		b.start()
		if b.gone(); has(t, b.admin, b.namespace, "one") {
			t.Error("the object is left")
		}
	})
	t.Run("an object without its owner stays", func(t *testing.T) {
		t.Parallel()
		b := unlabelledBench(t, "one")
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

// unlabelledBench has a component with these dependents, the first of which loses its label while no operator runs.
func unlabelledBench(t *testing.T, names ...string) *bench {
	t.Helper()
	b := newBench(t)
	var all []client.Object
	for _, name := range names {
		all = append(all, configMap(name, "1"))
	}
	b.create(all...)
	b.ready()
	b.stop()
	b.unlabel(names[0])
	return b
}

// unlabel takes the label by which it is watched from a ConfigMap.
func (b *bench) unlabel(name string) {
	b.t.Helper()
	b.patch("v1", "ConfigMap", name, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, b.key("owner-id")))
}
