package component_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
)

// writes are the operator's writes of a ConfigMap of the bench since the log was reset.
func (b *bench) writes(name string) []testenv.Request {
	return b.requests.Writes("configmaps", b.namespace, name)
}

// wrote fails the test unless a ConfigMap was written so often since the log was reset.
func (b *bench) wrote(name string, want int) {
	b.t.Helper()
	if got := b.writes(name); len(got) != want {
		b.t.Errorf("ConfigMap %s was written %d times, want %d:\n%v", name, len(got), want, got)
	}
}

// key is an annotation of the operator.
func (b *bench) key(name string) string { return b.operator + "/" + name }

// failed waits until the component "a" is in state Error with a message that has all the parts.
func (b *bench) failed(parts ...string) *bundle.Bundle {
	b.t.Helper()
	return b.await("Error: "+strings.Join(parts, ", "), func(o *bundle.Bundle) bool {
		return o.Status.State == component.StateError && containsAll(o.Status.Message, parts)
	})
}

func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
}

// value waits until a ConfigMap has a value.
func (b *bench) value(name, want string) *corev1.ConfigMap {
	b.t.Helper()
	return testenv.Wait(b.t, b.admin, b.named(name), "value "+want, func(m *corev1.ConfigMap) bool { return m.Data["value"] == want })
}

func (b *bench) named(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
}

// as writes as a client of another field manager does.
func (b *bench) as(manager string) client.Client { return client.WithFieldOwner(b.admin, manager) }

func TestReconcilePolicy(t *testing.T) {
	t.Parallel()
	t.Run("004-70 on-object-change", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1"), configMap("two", "1"))
		b.ready()
		b.wrote("one", 1)
		b.wrote("two", 1)
		b.change(configMap("one", "1"), configMap("two", "2"))
		b.ready()
		b.wrote("one", 1)
		b.wrote("two", 2)
	})
	t.Run("004-71 on-object-or-component-change", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		one := configMap("one", "1", b.key("reconcile-policy"), "on-object-or-component-change")
		b.start()
		b.create(one, configMap("two", "1"))
		b.ready()
		b.requests.Reset()
		for i := range 3 {
			b.change(one, configMap("two", fmt.Sprint(i)))
			b.ready()
			b.wrote("one", i+1)
		}
		b.fence()
		b.wrote("one", 3)
	})
	t.Run("004-72 once", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		b.start()
		once := func(value string) *corev1.ConfigMap {
			return configMap("one", value, b.key("reconcile-policy"), "once")
		}
		b.create(once("1"))
		b.ready()
		b.change(once("2"))
		b.ready()
		b.patch("v1", "ConfigMap", "one", `{"data":{"value":"3"},"metadata":{"labels":{"theirs":"x"}}}`)
		b.fence()
		b.wrote("one", 1)
		if got := b.live("one").Data["value"]; got != "3" {
			t.Errorf("the edit was changed to %q", got)
		}
		if got := b.ready().Status.Inventory; len(got) != 1 || got[0].Name != "one" {
			t.Errorf("inventory %v does not list it", got)
		}
		b.delete()
		b.gone()
		testenv.Gone(t, b.admin, b.named("one"), "deleted with the component")
	})
}

// foreign returns a ConfigMap that belongs to another component of the operator, or to none if other is
// empty.
func (b *bench) foreign(name, other string) *corev1.ConfigMap {
	b.t.Helper()
	m := configMap(name, "theirs")
	m.Namespace = b.namespace
	if other != "" {
		m.Annotations = map[string]string{b.key("owner-id"): other + " /ConfigMap/" + b.namespace + "/" + name}
		m.Labels = map[string]string{b.key("owner-id"): "another"}
	}
	if err := b.admin.Create(b.t.Context(), m); err != nil {
		b.t.Fatal(err)
	}
	return m
}

// TestAdoption: three situations by three policies, each as the operator's default and by annotation.
func TestAdoption(t *testing.T) {
	t.Parallel()
	t.Run("004-33 adoption policy", func(t *testing.T) {
		for _, policy := range []api.AdoptionPolicy{api.AdoptionPolicyNever, api.AdoptionPolicyIfUnowned, api.AdoptionPolicyAlways} {
			for how, byAnnotation := range map[string]bool{"option": false, "annotation": true} {
				t.Run(fmt.Sprintf("%s by %s", policy, how), func(t *testing.T) {
					t.Parallel()
					adoption(t, policy, byAnnotation)
				})
			}
		}
	})
}

// TestOtherOperator: what belongs to a component of an operator of another name has an owner.
func TestOtherOperator(t *testing.T) {
	t.Parallel()
	first, second := newBench(t), newBench(t)
	first.create(configMap("one", "1"))
	first.ready()
	before := first.live("one")
	theirs := configMap("one", "2")
	theirs.Namespace = first.namespace
	second.create(theirs)
	second.failed("belongs to", first.namespace+"/a of the operator "+first.operator, second.key("adoption-policy")+": always")
	second.fence()
	if live := first.live("one"); live.ResourceVersion != before.ResourceVersion {
		t.Errorf("the object of the other operator was written: %v", live)
	}
	second.delete()
	second.gone()
	first.live("one")
}

const otherOwner = "c1/shop/other"

func adoption(t *testing.T, policy api.AdoptionPolicy, byAnnotation bool) {
	t.Helper()
	b := prepareBench(t, func(o *options) {
		if o.Policies.AdoptionPolicy = policy; byAnnotation {
			o.Policies.AdoptionPolicy = api.AdoptionPolicyNever // the annotation wins
			if policy == api.AdoptionPolicyNever {
				o.Policies.AdoptionPolicy = api.AdoptionPolicyAlways
			}
		}
	})
	before := map[string]*corev1.ConfigMap{"unowned": b.foreign("unowned", ""), "owned": b.foreign("owned", otherOwner)}
	b.start()
	dependents := []client.Object{configMap("absent", "ours"), configMap("unowned", "ours"), configMap("owned", "ours")}
	if byAnnotation {
		for _, o := range dependents {
			o.SetAnnotations(map[string]string{b.key("adoption-policy"): string(policy)})
		}
	}
	b.create(dependents...)
	b.value("absent", "ours")
	var parts []string
	for name, adopted := range map[string]bool{
		"unowned": policy != api.AdoptionPolicyNever, "owned": policy == api.AdoptionPolicyAlways,
	} {
		if adopted {
			live := b.value(name, "ours")
			if live.UID != before[name].UID {
				t.Errorf("%s was created again", name)
			}
			continue
		}
		parts = append(parts, name, "adoption-policy: ")
		if name == "owned" {
			parts = append(parts, "belongs to "+otherOwner+";")
		}
	}
	if len(parts) == 0 {
		b.ready()
		return
	}
	b.failed(parts...)
	b.fence()
	for name, m := range before {
		if live := b.live(name); live.Data["value"] == "theirs" && live.ResourceVersion != m.ResourceVersion {
			t.Errorf("%s was refused, and written", name)
		}
	}
}

func TestDeletePolicy(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"delete", "default"} {
		t.Run("004-78 "+policy, func(t *testing.T) {
			t.Parallel()
			b := prepareBench(t)
			b.start()
			b.create(configMap("one", "1", b.key("delete-policy"), policy), configMap("two", "1", b.key("delete-policy"), policy))
			b.ready()
			b.change(configMap("two", "1", b.key("delete-policy"), policy))
			testenv.Gone(t, b.admin, b.named("one"), "no longer rendered")
			b.ready()
			b.delete()
			b.gone()
			testenv.Gone(t, b.admin, b.named("two"), "deleted with the component")
		})
	}
	t.Run("004-79 orphan", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		b.start()
		orphan := func(name string) *corev1.ConfigMap {
			m := configMap(name, "1", b.key("delete-policy"), "orphan", "example.org/ours", "1")
			m.Finalizers = []string{"example.org/theirs"}
			return m
		}
		b.create(orphan("one"), orphan("two"))
		b.ready()
		b.patch("v1", "ConfigMap", "one", fmt.Sprintf(`{"metadata":{"finalizers":["example.org/theirs",%q]}}`, b.key("finalizer")))
		b.change(orphan("two"))
		inventory := b.await("released", func(o *bundle.Bundle) bool { return isReady(o) && len(o.Status.Inventory) == 1 }).Status.Inventory
		if inventory[0].Name != "two" {
			t.Errorf("inventory %v, want two", inventory)
		}
		b.released("one")
		b.delete()
		b.gone()
		b.released("two")
	})
}

// released checks that nothing of a ConfigMap is the operator's but its values.
func (b *bench) released(name string) {
	b.t.Helper()
	live := b.live(name)
	if live.Data["value"] != "1" || live.Annotations["example.org/ours"] != "1" || !slices.Equal(live.Finalizers, []string{"example.org/theirs"}) {
		b.t.Errorf("%s lost values, annotations or finalizers of others: %v", name, live)
	}
	text, err := json.Marshal(live)
	if err != nil {
		b.t.Fatal(err)
	}
	if strings.Contains(string(text), b.operator) {
		b.t.Errorf("%s still names the operator: %s", name, text)
	}
	live.Finalizers = nil
	if err := b.admin.Update(b.t.Context(), live); err != nil { // or the namespace stays
		b.t.Fatal(err)
	}
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	t.Run("004-32 missing namespaces", func(t *testing.T) {
		t.Parallel()
		t.Run("created", func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.namespaceIn(b.namespace + "-x")
		})
		t.Run("not created", func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(o *options) { o.Namespaces = api.NamespacePolicyDoNotCreate })
			missing := b.namespace + "-x"
			two := configMap("two", "1")
			two.Namespace = missing
			b.create(configMap("one", "1"), two)
			b.failed("namespace "+missing+" does not exist", "create it")
			b.value("one", "1")
			err := b.admin.Get(t.Context(), types.NamespacedName{Name: missing}, &corev1.Namespace{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("namespace %s: %v, want none", missing, err)
			}
		})
	})
}

// namespaceIn installs objects in a namespace that is missing, deletes them, and looks what is left.
func (b *bench) namespaceIn(missing string) {
	b.t.Helper()
	two := configMap("two", "1")
	two.Namespace = missing
	b.create(configMap("one", "1"), two)
	if got := b.ready().Status.Inventory; len(got) != 2 {
		b.t.Errorf("inventory %v, want one and two", got)
	}
	b.delete()
	b.gone()
	ns := &corev1.Namespace{}
	if err := b.admin.Get(b.t.Context(), types.NamespacedName{Name: missing}, ns); err != nil {
		b.t.Fatal(err)
	}
	if ns.DeletionTimestamp != nil || strings.Contains(fmt.Sprint(ns.Labels, ns.Annotations), b.operator) {
		b.t.Errorf("the namespace is not bare, or being deleted: %v", ns.ObjectMeta)
	}
	if err := b.admin.Delete(b.t.Context(), ns); err != nil {
		b.t.Fatal(err)
	}
}

func TestAnnotationNames(t *testing.T) {
	t.Parallel()
	t.Run("004-88 another operator's annotations", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1", "other.op/reconcile-policy", "once", "other.op/delete-policy", "orphan", "other.op/update-policy", "nonsense"))
		b.ready()
		b.change(configMap("one", "2", "other.op/reconcile-policy", "once", "other.op/delete-policy", "orphan"))
		b.ready()
		if live := b.value("one", "2"); live.Annotations["other.op/reconcile-policy"] != "once" {
			t.Errorf("annotations %v: those of the other operator are gone", live.Annotations)
		}
		b.delete()
		b.gone()
		testenv.Gone(t, b.admin, b.named("one"), "deleted")
	})
	t.Run("004-34 invalid policies", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		for _, policy := range []string{"adoption-policy", "reconcile-policy", "update-policy", "delete-policy", "conflict-policy", "immutable-policy", "mode"} {
			b.createAs(policy, configMap("one", "1", b.key(policy), "nonsense"), configMap("two", "1"))
			testenv.Wait(t, b.admin, &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: policy}}, "Error", func(o *bundle.Bundle) bool {
				return o.Status.State == component.StateError && containsAll(o.Status.Message, []string{b.key(policy), `"nonsense"`, "it must be"})
			})
		}
		b.wrote("one", 0)
		b.wrote("two", 0)
	})
}

// TestUpdatePolicy: the update policy is that of the dependent, of the options, or replace.
func TestUpdatePolicy(t *testing.T) {
	t.Parallel()
	merge := component.UpdatePolicy(api.UpdatePolicySsaMerge)
	for name, test := range map[string]struct {
		option     *component.UpdatePolicy
		annotation string
		want       api.UpdatePolicy
		verb       string
	}{
		"default":    {want: api.UpdatePolicyReplace, verb: "update"},
		"option":     {option: &merge, want: api.UpdatePolicySsaMerge, verb: "apply"},
		"annotation": {option: &merge, annotation: "replace", want: api.UpdatePolicyReplace, verb: "update"},
	} {
		t.Run("004-34 "+name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.options.UpdatePolicy = test.option
			s.start()
			one := func(value string) *corev1.ConfigMap {
				m := configMap("one", value)
				if test.annotation != "" {
					m.Annotations = map[string]string{s.operator + "/update-policy": test.annotation}
				}
				return m
			}
			s.create(product.Spec{}, one("1"))
			if p := s.is("Ready", "Ready"); p.Status.Inventory[0].UpdatePolicy != test.want {
				t.Errorf("policy %s, want %s", p.Status.Inventory[0].UpdatePolicy, test.want)
			}
			s.requests.Reset()
			changed, err := json.Marshal(map[string]any{"spec": map[string]any{"objects": []any{one("2")}}})
			if err != nil {
				t.Fatal(err)
			}
			s.patch(string(changed))
			testenv.Wait(t, s.admin, s.configMap("one"), "changed", func(m *corev1.ConfigMap) bool { return m.Data["value"] == "2" })
			if writes := s.requests.Writes("configmaps", s.namespace, "one"); len(writes) != 1 || writes[0].Verb != test.verb {
				t.Errorf("writes %v, want one %s", writes, test.verb)
			}
		})
	}
}

// TestDefaultPolicy: the deprecated value default means what the operator's options say.
func TestDefaultPolicy(t *testing.T) {
	t.Parallel()
	t.Run("004-73 default", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, func(o *options) {
			o.Policies.UpdatePolicy, o.Policies.DeletePolicy = api.UpdatePolicyRecreate, api.DeletePolicyOrphan
		})
		one := func(value string) *corev1.ConfigMap {
			return configMap("one", value, b.key("update-policy"), "default", b.key("delete-policy"), "default")
		}
		b.create(one("1"))
		b.ready()
		before := b.live("one")
		b.change(one("2"))
		b.ready()
		if live := b.live("one"); live.UID == before.UID || live.Data["value"] != "2" || live.Annotations[b.key("update-policy")] != "" {
			t.Errorf("the object was not created again: %v", live)
		}
		b.change(one("3"))
		b.ready()
		b.change(configMap("one", "1", b.key("mode"), "nonsense"))
		b.events("Error", 1) // events are recorded in order
		b.delete()
		b.gone()
		if live := b.live("one"); live.DeletionTimestamp != nil || live.Labels[b.key("owner-id")] != "" {
			t.Errorf("the object was not orphaned: %v", live)
		}
		want := []string{fmt.Sprintf(`ConfigMap one: annotation %s is "default", which is deprecated; remove the annotation; `+
			`ConfigMap one: annotation %s is "default", which is deprecated; remove the annotation`, b.key("update-policy"), b.key("delete-policy"))}
		if diff := cmp.Diff(want, b.events("Deprecated", len(want))); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// events waits for some events with a reason and returns the notes of all, sorted, each as often as it was recorded.
func (b *bench) events(reason string, n int) []string {
	b.t.Helper()
	var notes []string
	within(b.t, "events with the reason "+reason, func() bool {
		var list eventsv1.EventList
		if err := b.admin.List(b.t.Context(), &list, client.InNamespace(b.namespace)); err != nil {
			b.t.Fatal(err)
		}
		notes = nil
		for _, e := range list.Items {
			for range seen(e) {
				if e.Reason == reason {
					notes = append(notes, e.Note)
				}
			}
		}
		return len(notes) >= n
	})
	slices.Sort(notes)
	return notes
}

// seen is how often an event was recorded.
func seen(e eventsv1.Event) int32 {
	if e.Series != nil {
		return e.Series.Count
	}
	return 1
}
