package component_test

import (
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestCrashSweep: a component with three waves is installed, updated so that objects go, come and change, and
// deleted, while the operator is killed before and after each write. One object of a wave becomes ready only
// after a while, and so is its deletion.
func TestCrashSweep(t *testing.T) {
	t.Parallel()
	t.Run("B-37 a sweep of three waves", func(t *testing.T) { componenttest.CrashSweep(t, threeWaves(t)) })
}

// threeWaves is the story of a component with three waves.
func threeWaves(t *testing.T) componenttest.Sweep[*bundle.Bundle] {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, bundle.CRDs)
	testenv.Install(t, cfg, componenttest.Kinds()...)
	const name = "sweep.op.test"
	b := &bench{t: t}
	of := func(objects ...client.Object) *bundle.Bundle {
		c := &bundle.Bundle{}
		c.Name = "a"
		c.Spec.Objects = b.raw(objects...)
		return c
	}
	wave := func(o, value, n string) client.Object {
		return configMap(o, value, name+"/apply-order", n, name+"/delete-order", n)
	}
	slow := func(o, n string) client.Object {
		foo := componenttest.New("Foo", "", o)
		foo.SetAnnotations(map[string]string{name + "/apply-order": n, name + "/delete-order": n, name + "/status-hint": "has-ready-condition"})
		foo.SetFinalizers([]string{componenttest.Finalizer})
		return foo
	}
	return componenttest.Sweep[*bundle.Bundle]{
		Config: cfg, AddToScheme: bundle.AddToScheme, Renderer: component.RenderFunc[*bundle.Bundle](render),
		Options: options{Name: name, Loop: loop.Options[*bundle.Bundle]{
			Retry: loop.Retry{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond},
		}},
		Versions: []*bundle.Bundle{
			of(wave("a", "1", "1"), slow("b", "1"), wave("c", "1", "2"), slow("d", "2"), wave("e", "1", "3")),
			of(wave("a", "1", "1"), slow("b", "1"), wave("c", "2", "2"), wave("f", "1", "3")),
		},
		Every: killsPlayed(),
		Prepare: func(t testing.TB, c client.WithWatch, namespace string) {
			t.Helper()
			componenttest.Play(t, c, namespace, componenttest.Kind("Foo"))
		},
	}
}

// TestShards: inventories of many dependents.
func TestShards(t *testing.T) {
	t.Parallel()
	t.Run("B-9 W15 compact inventory, in shards", func(t *testing.T) {
		t.Run("10,000 and 100,000 dependents", manyRecorded)
		t.Run("a component", manyDependents)
		t.Run("sweep", shardSweep)
	})
}

// shardSweep is the crash sweep of a component whose inventory is in ConfigMaps, and then in the status again.
func shardSweep(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, bundle.CRDs)
	const name = "shards.op.test"
	b := &bench{t: t}
	of := func(objects ...client.Object) *bundle.Bundle {
		c := &bundle.Bundle{}
		c.Name = "a"
		c.Spec.Objects = b.raw(objects...)
		return c
	}
	versions := []*bundle.Bundle{
		of(configMap("a", "1"), configMap("b", "1"), configMap("c", "1")),
		of(configMap("a", "1"), configMap("b", "2"), configMap("d", "1"), configMap("e", "1")),
		of(configMap("a", "1"), configMap("b", "2")), // readable
	}
	if !deep() {
		versions = slices.Delete(versions, 1, 2)
	}
	componenttest.CrashSweep(t, componenttest.Sweep[*bundle.Bundle]{
		Config: cfg, AddToScheme: bundle.AddToScheme, Renderer: component.RenderFunc[*bundle.Bundle](render),
		Options: options{
			Name: name, Inventory: component.InventoryOptions{ReadableUpTo: 2, InlineUpTo: 1}.WithShards(2),
			Loop: loop.Options[*bundle.Bundle]{Retry: loop.Retry{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond}},
		},
		Versions: versions,
		Every:    killsPlayed(),
	})
}
