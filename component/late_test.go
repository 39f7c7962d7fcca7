package component_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestTimeouts(t *testing.T) {
	t.Parallel()
	t.Run("B-40 timeouts of objects, waves and components", func(t *testing.T) {
		t.Parallel()
		for name, f := range map[string]func(*testing.T){
			"object": lateObject, "wave": lateWave, "component": lateComponent, "each on its own": lateAll, "invalid": invalidTimeout,
			"no write of its own": freeTimeout, "gate": lateGate,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f(t)
			})
		}
	})
}

// late waits until the component "a" says that something takes too long.
func (b *bench) late(parts ...string) *bundle.Bundle {
	b.t.Helper()
	return b.await("Timeout: "+strings.Join(parts, ", "), func(o *bundle.Bundle) bool {
		return o.Status.State == component.StateError && reasonOf(o) == "Timeout" && containsAll(o.Status.Message, parts)
	})
}

func reasonOf(o *bundle.Bundle) string {
	for _, c := range o.Status.Conditions {
		if c.Type == api.ConditionReady {
			return c.Reason
		}
	}
	return ""
}

// since is since when a dependent is not ready, as the inventory has it.
func since(o *bundle.Bundle, name string) *metav1.Time {
	i := slices.IndexFunc(o.Status.Inventory, func(i api.InventoryItem) bool { return i.Name == name })
	if i < 0 {
		return nil
	}
	return o.Status.Inventory[i].Since
}

// lateObject: how long an object waits survives the process, a change of its timeout and one of another object.
func lateObject(t *testing.T) {
	t.Helper()
	b := newBench(t).withTasks()
	timeout := b.key("timeout")
	b.create(task("one", timeout, "1h"), task("two"))
	first := since(b.await("applied", func(o *bundle.Bundle) bool { return since(o, "one") != nil }), "one")
	within(t, "a second", func() bool { return time.Since(first.Time) > time.Second })
	b.stop()
	b.change(task("one", timeout, "1s"), task("two"), configMap("three", "1"))
	b.start()
	o := b.late("Task " + b.namespace + "/one is not ready after 1s: it ")
	if strings.Contains(o.Status.Message, "/two") || strings.Contains(o.Status.Message, ";") {
		t.Errorf("the message %q names more than what is late", o.Status.Message)
	}
	if again := since(o, "one"); !again.Equal(first) {
		t.Errorf("it waits since %s, want %s", again, first)
	}
	b.value("three", "1") // nothing is held
	b.finish("one", true)
	b.waiting("Task " + b.namespace + "/two")
	b.finish("two", true)
	if o := b.ready(); since(o, "one") != nil || since(o, "two") != nil {
		t.Error("what is ready waits")
	}
	b.change(task("one"), task("two"), configMap("three", "1"), task("four", timeout, "1s")) // no event comes in time
	b.late("Task " + b.namespace + "/four is not ready after 1s: it ")
	b.finish("four", true)
	b.ready()
}

func lateWave(t *testing.T) {
	t.Helper()
	b := newBench(t, func(o *options) { o.WaveTimeout = time.Second }).withTasks()
	order := b.key("apply-order")
	b.create(task("first", order, "-2"), task("second", order, "7"))
	b.late("wave -2 is not ready after 1s: waiting for Task " + b.namespace + "/first: it ")
	b.finish("first", true)
	o := b.late("wave 7 is not ready after 1s: waiting for Task " + b.namespace + "/second: it ")
	if since := o.Status.Wave; since == nil || since.Order != 7 {
		t.Errorf("the wave is %v, want 7", since)
	}
	b.finish("second", true)
	if o := b.ready(); o.Status.Wave != nil {
		t.Errorf("wave %v is left", o.Status.Wave)
	}
}

func lateComponent(t *testing.T) {
	t.Helper()
	b := newBench(t, func(o *options) { o.Timeout = time.Second }).withTasks()
	b.create(task("one"))
	b.late("not ready after 1s: waiting for Task " + b.namespace + "/one: it ")
	b.finish("one", true)
	b.ready()
}

func lateAll(t *testing.T) {
	t.Helper()
	b := newBench(t, func(o *options) { o.WaveTimeout, o.Timeout = 2*time.Second, 3*time.Second }).withTasks()
	b.create(task("one", b.key("timeout"), "1s"))
	title := "Task " + b.namespace + "/one"
	b.late(title + " is not ready after 1s: it ")
	b.late(title+" is not ready after 1s: it ", "; wave 0 is not ready after 2s")
	b.late(title+" is not ready after 1s: it ", "; wave 0 is not ready after 2s; not ready after 3s: waiting for "+title)
	b.finish("one", true)
	b.ready()
}

func invalidTimeout(t *testing.T) {
	t.Helper()
	b := newBench(t)
	b.create(configMap("one", "1", b.key("timeout"), "soon"), configMap("two", "1", b.key("timeout"), "-1s"), configMap("three", "1"))
	b.failed("ConfigMap one: annotation "+b.key("timeout")+` is "soon"; it must be a positive time`, "; ConfigMap two: annotation "+b.key("timeout")+` is "-1s"`)
	b.untouched()
}

// freeTimeout: a component whose dependents have timeouts is written as often as one without.
func freeTimeout(t *testing.T) {
	t.Helper()
	writes := func(timeout string, wave time.Duration) int {
		b := newBench(t, func(o *options) { o.WaveTimeout = wave }).withTasks()
		one := task("one")
		if timeout != "" {
			annotate(one, b.key("timeout"), timeout)
		}
		b.create(one, task("two", b.key("apply-order"), "1"))
		for _, name := range []string{"one", "two"} {
			b.waiting("Task " + b.namespace + "/" + name)
			b.finish(name, true)
		}
		b.ready()
		b.fence()
		return len(b.requests.Select(func(r testenv.Request) bool { return r.IsWrite() && r.Resource == "bundles" }))
	}
	if without, with := writes("", 0), writes("1h", time.Hour); with != without {
		t.Errorf("%d writes of the component, want %d", with, without)
	}
}

// lateGate: what is no Kubernetes object says why it is late.
func lateGate(t *testing.T) {
	t.Helper()
	b := prepareBench(t)
	b.renderer = component.RenderFunc[*bundle.Bundle](func(context.Context, component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		var s component.Set
		s.Gate("license", time.Second, func(context.Context) (string, error) { return "the license is not valid yet", nil }).Timeout(time.Second)
		return s, nil
	})
	b.start()
	b.create()
	b.late("license is not ready after 1s: the license is not valid yet")
}
