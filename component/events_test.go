package component_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trimtab-dev/trimtab/testenv"
)

// about waits for an event about an object and returns all about it so far, oldest first.
func (b *bench) about(kind, name, reason string) []string {
	b.t.Helper()
	var found []string
	within(b.t, "event "+reason+" about "+name, func() bool {
		var list eventsv1.EventList
		if err := b.admin.List(b.t.Context(), &list, client.InNamespace(b.namespace)); err != nil {
			b.t.Fatal(err)
		}
		slices.SortFunc(list.Items, func(x, y eventsv1.Event) int { return x.EventTime.Compare(y.EventTime.Time) })
		found = nil
		for _, e := range list.Items {
			for range seen(e) {
				if e.Regarding.Kind == kind && e.Regarding.Name == name {
					found = append(found, e.Type+" "+e.Reason)
				}
			}
		}
		return slices.ContainsFunc(found, func(text string) bool { return strings.HasSuffix(text, " "+reason) })
	})
	return found
}

// TestEvents: what happens to components and their dependents is recorded.
func TestEvents(t *testing.T) {
	t.Parallel()
	t.Run("of dependents", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, func(o *options) { o.DependentEvents = true })
		b.create(configMap("one", "1"))
		b.ready()
		b.about("ConfigMap", "one", "Created")
		b.change(configMap("one", "2"))
		b.ready()
		b.about("ConfigMap", "one", "Updated")
		b.change(configMap("one", "2"), configMap("Two", "1"))
		b.failed("Two")
		b.about("ConfigMap", "Two", "UpdateError")
		b.change(configMap("one", "2"))
		b.ready()
		b.delete()
		b.gone()
		want := []string{"Normal Created", "Normal Updated", "Normal Deleted"}
		if diff := cmp.Diff(want, b.about("ConfigMap", "one", "Deleted")); diff != "" {
			t.Errorf("events about the dependent (-want +got):\n%s", diff)
		}
	})
	t.Run("of components", func(t *testing.T) {
		t.Parallel()
		b := newBench(t).withTasks()
		b.create(task("one"))
		b.waiting("Task " + b.namespace + "/one")
		b.fence() // another pass is no news
		b.finish("one", true)
		b.ready()
		b.fence()
		want := []string{"Normal FirstSeen", "Normal Processing", "Normal Ready"}
		if diff := cmp.Diff(want, b.about("Bundle", "a", "Ready")); diff != "" {
			t.Errorf("events about the component (-want +got):\n%s", diff)
		}
	})
	t.Run("switched off by the annotation", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t, func(o *options) { o.DependentEvents = true })
		b.start()
		quiet := configMap("one", "1")
		obj := b.create(quiet)
		b.about("ConfigMap", "one", "Created")
		b.patch("bundles.trimtab.dev/v1", "Bundle", "a", `{"metadata":{"annotations":{"`+b.key("disable-events")+`":"true"}}}`)
		b.ready()
		before := b.about("Bundle", "a", "Ready")
		b.change(configMap("one", "2"), configMap("two", "1", b.key("mode"), "nonsense"))
		b.failed("nonsense")
		b.change(configMap("one", "3"))
		b.ready()
		b.patch("bundles.trimtab.dev/v1", "Bundle", "a", `{"metadata":{"annotations":{"`+b.key("disable-events")+`":null}}}`)
		b.change(configMap("one", "4"), configMap("two", "1"))
		b.ready()
		b.about("ConfigMap", "two", "Created") // events are recorded in order
		if now := b.about("Bundle", obj.Name, "Ready"); slices.Contains(now, "Warning Error") || len(before) == 0 {
			t.Errorf("events %v, then %v", before, now)
		}
		want := []string{"Normal Created", "Normal Updated"}
		if diff := cmp.Diff(want, b.about("ConfigMap", "one", "Updated")); diff != "" {
			t.Errorf("events about the dependent (-want +got):\n%s", diff)
		}
	})
}

// TestMetrics: dependents are counted by their health, and requests by their result.
func TestMetrics(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTasks()
	b.create(task("one"), configMap("two", "1"), configMap("three", "1"))
	b.waiting("Task " + b.namespace + "/one")
	want := map[string]float64{
		"trimtab_dependents Current": 2, "trimtab_dependents InProgress": 1, "trimtab_dependent_operations_total create ok": 3,
	}
	if diff := cmp.Diff(want, b.metrics()); diff != "" {
		t.Errorf("while one is not ready (-want +got):\n%s", diff)
	}
	b.finish("one", true)
	b.ready()
	b.change(task("one"), configMap("two", "2"), configMap("Three", "1"))
	b.failed("Three")
	b.delete()
	b.gone()
	testenv.Gone(t, b.admin, b.named("two"), "deleted")
	got := b.metrics()
	if got["trimtab_dependent_errors_total Invalid"] == 0 || got["trimtab_dependent_operations_total update error"] == 0 {
		t.Errorf("metrics %v: no failure is counted", got)
	}
	delete(got, "trimtab_dependent_errors_total Invalid")
	delete(got, "trimtab_dependent_operations_total update error")
	want = map[string]float64{
		"trimtab_dependent_operations_total create ok": 3, "trimtab_dependent_operations_total update ok": 1, "trimtab_dependent_operations_total delete ok": 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("when all are gone (-want +got):\n%s", diff)
	}
}

// metrics are those of the operator that are not zero.
func (b *bench) metrics() map[string]float64 {
	b.t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels, ours := f.GetName(), false
			for _, l := range m.GetLabel() {
				if l.GetName() == "operator" {
					ours = l.GetValue() == b.operator
					continue
				}
				labels += " " + l.GetValue()
			}
			if value := m.GetCounter().GetValue() + m.GetGauge().GetValue(); ours && value != 0 {
				out[labels] = value
			}
		}
	}
	return out
}
