package component_test

import (
	gocmp "cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
)

// slow is a dependent that is not ready before somebody sets its condition Ready.
func (s *shop) slow() *bundle.Bundle {
	return &bundle.Bundle{
		TypeMeta:   metav1.TypeMeta{APIVersion: "bundles.trimtab.dev/v1", Kind: "Bundle"},
		ObjectMeta: metav1.ObjectMeta{Name: "slow", Annotations: map[string]string{s.operator + "/status-hint": "has-ready-condition"}},
	}
}

// finish makes the slow dependent ready, or not.
func (s *shop) finish(status metav1.ConditionStatus) {
	s.t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, status)
	slow := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "slow"}}
	if err := s.admin.Status().Patch(s.t.Context(), slow, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		s.t.Fatal(err)
	}
}

// newSlowShop is a shop for components with slow dependents.
func newSlowShop(t *testing.T) *shop {
	t.Helper()
	s := newShop(t)
	testenv.InstallFS(t, s.cfg, bundle.CRDs)
	s.admin = testenv.Client(t, s.cfg, func(scheme *runtime.Scheme) error {
		return errors.Join(product.AddToScheme(scheme), bundle.AddToScheme(scheme))
	})
	return s
}

// TestStates: every state and reason occurs on a real API server, and no others.
func TestStates(t *testing.T) {
	t.Parallel()
	s := newSlowShop(t)
	var failure atomic.Pointer[error]
	var finished atomic.Int64
	s.hooks = func(r *reconciler) {
		r.WithPreDeleteHook(func(context.Context, client.Client, *product.Product) error { return *failure.Load() })
		r.WithPostReconcileHook(func(context.Context, client.Client, *product.Product) error { finished.Add(1); return nil })
	}
	failWith := func(err error) { failure.Store(&err) }
	failWith(nil)
	seen := s.record()
	s.start()
	kind := schema.GroupKind{Group: s.namespace + ".example.org", Kind: "Baz"}
	s.create(product.Spec{}, s.slow(), plain(kind))
	s.is("Processing", "Processing")
	s.claim()
	if n := finished.Load(); n != 0 {
		t.Errorf("the post-reconcile hook was called %d times before the dependents were ready", n)
	}
	s.finish(metav1.ConditionTrue)
	s.is("Ready", "Ready")
	if finished.Load() == 0 {
		t.Error("the post-reconcile hook was not called")
	}
	s.waits()
	s.generator.set("x", func(context.Context, call) ([]client.Object, error) { return nil, errors.New("no luck") })
	s.patch(`{"spec":{"timeout":"1h"}}`)
	s.is("Error", "Error")
	s.generator.set("", nil)
	s.is("Ready", "Ready")

	foreign := object(kind.Group+"/v1", kind.Kind, "theirs", nil)
	foreign.SetNamespace(s.namespace)
	if err := s.admin.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	failWith(component.NewRetriableError(errors.New("busy"), new(50*time.Millisecond)))
	s.patch(`{"metadata":{"finalizers":["` + s.operator + `/finalizer","example.org/theirs"]}}`)
	s.delete()
	s.says("DeletionBlocked", "example.org/theirs")
	s.finalizers("/metadata/finalizers/1", "slow-holder")
	s.is("DeletionPending", "DeletionRetrying")
	failWith(errors.New("no luck"))
	s.is("Error", "Error")
	failWith(nil)
	s.says("DeletionBlocked", "1 object of kind Baz")
	if err := s.admin.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	s.is("Deleting", "DeletionProcessing")
	s.release()
	testenv.Gone(t, s.admin, s.named("a"), "deleted")
	s.recorded(t, seen())
}

// waits has a component wait for all that it can wait for.
func (s *shop) waits() {
	s.t.Helper()
	s.patch(`{"spec":{"suspend":true}}`)
	s.is("Pending", "Suspended")
	s.patch(`{"spec":{"suspend":false,"settings":{"name":"settings-of-a"}}}`)
	s.is("Pending", "Retrying")
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings-of-a"}, Data: map[string]string{"a": "b"}}
	if err := s.admin.Create(s.t.Context(), settings.DeepCopy()); err != nil {
		s.t.Fatal(err)
	}
	s.is("Ready", "Ready")
	s.finish(metav1.ConditionFalse)
	s.is("Processing", "Processing")
	s.patch(`{"spec":{"timeout":"1ms"}}`)
	s.is("Error", "Timeout")
	if err := s.admin.Delete(s.t.Context(), settings.DeepCopy()); err != nil {
		s.t.Fatal(err)
	}
	s.is("Pending", "Timeout")
	if err := s.admin.Create(s.t.Context(), settings.DeepCopy()); err != nil {
		s.t.Fatal(err)
	}
	s.is("Error", "Timeout")
	s.t.Run("004-54 after the timeout it can still become ready", func(*testing.T) {
		s.finish(metav1.ConditionTrue)
		s.is("Ready", "Ready")
	})
}

// says waits until a deletion waits for a reason and says for what.
func (s *shop) says(reason, text string) {
	s.t.Helper()
	s.await(reason+": "+text, func(p *product.Product) bool {
		return p.Status.State == "Deleting" && ready(p).Reason == reason && strings.Contains(p.Status.Message, text)
	})
}

// claim has another controller set a condition of its own.
func (s *shop) claim() {
	s.t.Helper()
	patch := `{"apiVersion":"products.trimtab.dev/v1","kind":"Product","metadata":{"name":"a"},"status":{"conditions":[` +
		`{"type":"Insured","status":"True","reason":"Paid","message":"theirs","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	if err := s.admin.Status().Patch(s.t.Context(), s.named("a"), client.RawPatch(types.ApplyPatchType, []byte(patch)), client.FieldOwner("insurer")); err != nil {
		s.t.Fatal(err)
	}
}

// release lets the slow dependent go.
func (s *shop) release() {
	s.t.Helper()
	slow := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "slow"}}
	if err := s.admin.Patch(s.t.Context(), slow, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		s.t.Fatal(err)
	}
}

// finalizers removes one of the component's finalizers and has the slow dependent held by another.
func (s *shop) finalizers(path, holder string) {
	s.t.Helper()
	slow := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "slow"}}
	body := fmt.Sprintf(`{"metadata":{"finalizers":["example.org/%s"]}}`, holder)
	if err := s.admin.Patch(s.t.Context(), slow, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		s.t.Fatal(err)
	}
	if err := s.admin.Patch(s.t.Context(), s.named("a"), client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op":"remove","path":%q}]`, path))); err != nil {
		s.t.Fatal(err)
	}
}

// record watches the component from the start and returns all versions of it.
func (s *shop) record() func() []*product.Product {
	s.t.Helper()
	events, err := s.admin.Watch(s.t.Context(), &product.ProductList{}, client.InNamespace(s.namespace))
	if err != nil {
		s.t.Fatal(err)
	}
	done := make(chan []*product.Product)
	go func() {
		var seen []*product.Product
		defer func() { done <- seen }()
		for event := range events.ResultChan() {
			p, ok := event.Object.(*product.Product)
			if !ok {
				return
			}
			if seen = append(seen, p); event.Type == "DELETED" {
				return
			}
		}
	}()
	return func() []*product.Product { defer events.Stop(); return <-done }
}

// recorded checks all versions of the component.
func (s *shop) recorded(t *testing.T, all []*product.Product) {
	t.Helper()
	t.Run("004-12 the states and reasons", func(t *testing.T) {
		got := map[string]bool{}
		for _, p := range all {
			got[p.Status.State+" "+ready(p).Reason] = true
		}
		want := map[string]bool{" ": true} // before the first pass
		for _, one := range []string{
			"Pending FirstSeen", "Pending Suspended", "Pending Retrying", "Pending Timeout", "Processing Processing", "Processing Restarting", "Ready Ready",
			"Error Error", "Error Timeout", "DeletionPending DeletionRetrying", "Deleting DeletionBlocked", "Deleting DeletionProcessing",
		} {
			want[one] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
	})
	t.Run("004-11 one condition Ready, and that of another", func(t *testing.T) {
		claimed := false
		for _, p := range all {
			types := map[string]int{}
			for _, c := range p.Status.Conditions {
				if types[c.Type]++; c.Type == "Ready" && (c.Reason == "" || c.Message == "" || c.LastTransitionTime.IsZero()) {
					t.Errorf("condition %+v", c)
				}
			}
			status := map[string]metav1.ConditionStatus{"Ready": "True", "Error": "False"}[p.Status.State]
			if p.Status.State != "" && (types["Ready"] != 1 || ready(p).Status != gocmp.Or(status, "Unknown")) {
				t.Errorf("in state %s the conditions are %+v", p.Status.State, p.Status.Conditions)
			}
			if claimed = claimed || types["Insured"] == 1; claimed && types["Insured"] != 1 {
				t.Errorf("the condition of another is gone: %+v", p.Status.Conditions)
			}
		}
		if !claimed {
			t.Error("the condition of another never existed")
		}
	})
}

// TestReferences: what a component refers to is watched, and its values are read when they are needed.
func TestReferences(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.tune = func(o *component.Options[*product.Product]) { o.RequeueInterval = 10 * time.Millisecond }
	s.start()
	s.create(product.Spec{Passwords: map[string]api.SecretKeyReference{"db": {Name: "db", Key: "password"}}})
	p := s.is("Pending", "Retrying")
	if want := "waiting for Secret " + s.namespace + "/db: it does not exist"; p.Status.Message != want {
		t.Errorf("message %q, want %q", p.Status.Message, want)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"}, StringData: map[string]string{"user": "x"}}
	if err := s.admin.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	s.await("the key is missing", func(p *product.Product) bool { return strings.Contains(p.Status.Message, `it has no key "password"`) })
	change := func(body string) {
		t.Helper()
		if err := s.admin.Patch(t.Context(), secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	change(`{"stringData":{"password":"one"}}`)
	testenv.Wait(t, s.admin, s.configMap("settings"), "one", func(m *corev1.ConfigMap) bool { return m.Data["db"] == "one" })
	change(`{"stringData":{"password":"two"}}`)
	testenv.Wait(t, s.admin, s.configMap("settings"), "two", func(m *corev1.ConfigMap) bool { return m.Data["db"] == "two" })
	s.is("Ready", "Ready")
	_, before := s.generator.counts()
	change(`{"stringData":{"user":"y"}}`)
	s.passes(20)
	if _, after := s.generator.counts(); after != before {
		t.Errorf("another key of the Secret caused %d renderings", after-before)
	}
}

// passes waits for passes over the component that begin after now.
func (s *shop) passes(n int) {
	s.t.Helper()
	seen := make(chan struct{}, n)
	s.generator.mu.Lock()
	s.generator.seen = seen
	s.generator.mu.Unlock()
	for range n {
		<-seen
	}
}

// TestSilence: passes that a timer causes render nothing, read nothing and write nothing.
func TestSilence(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.tune = func(o *component.Options[*product.Product]) { o.RequeueInterval = time.Millisecond }
	s.start()
	s.create(product.Spec{}, configMap("one", "1"))
	s.is("Ready", "Ready")
	s.passes(10)
	s.requests.Reset()
	_, before := s.generator.counts()
	s.passes(1000)
	t.Run("1,000 timer passes render nothing", func(t *testing.T) {
		if _, after := s.generator.counts(); after != before {
			t.Errorf("%d renderings", after-before)
		}
	})
	t.Run("W9 nothing is read or written", func(t *testing.T) {
		for _, r := range s.requests.All() {
			if r.Verb != "watch" {
				t.Errorf("request %s", r)
			}
		}
	})
	t.Run("what the version names is rendered once", func(t *testing.T) {
		s.generator.set("2", nil)
		s.passes(10)
		if _, after := s.generator.counts(); after != before+1 {
			t.Errorf("%d renderings, want one", after-before)
		}
	})
}

// TestSingleton: two components have nothing in common, and where one is allowed the second is refused.
func TestSingleton(t *testing.T) {
	t.Parallel()
	t.Run("004-01 two components in two namespaces", func(t *testing.T) {
		t.Parallel()
		s := newShop(t)
		elsewhere := testenv.Namespace(t, s.cfg)
		s.manager = func(o *ctrl.Options) { o.Cache.DefaultNamespaces[elsewhere] = cache.Config{} }
		s.start()
		a := s.create(product.Spec{}, configMap("one", "1"))
		b := &product.Product{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "a"}, Spec: a.Spec}
		if err := s.admin.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		first := s.is("Ready", "Ready")
		second := testenv.Wait(t, s.admin, b.DeepCopy(), "ready", func(p *product.Product) bool { return p.Status.State == "Ready" })
		if x, y := first.Status.Inventory, second.Status.Inventory; len(x) != 1 || len(y) != 1 || x[0].Key() == y[0].Key() || x[0].UID == y[0].UID {
			t.Errorf("inventories %v and %v", x, y)
		}
		one, two := live(t, s.admin, s.namespace, "one"), live(t, s.admin, elsewhere, "one")
		if key := s.operator + "/owner-id"; one.Labels[key] == two.Labels[key] || one.Annotations[key] == two.Annotations[key] {
			t.Errorf("owners %s %s, %s %s", one.Labels[key], two.Labels[key], one.Annotations[key], two.Annotations[key])
		}
		s.delete()
		testenv.Gone(t, s.admin, s.named("a"), "deleted")
		if after := live(t, s.admin, elsewhere, "one"); after.ResourceVersion != two.ResourceVersion {
			t.Error("the object of the other component was written")
		}
	})
	t.Run("004-01 one is allowed", func(t *testing.T) {
		t.Parallel()
		s := newShop(t)
		s.tune = func(o *component.Options[*product.Product]) { o.Singleton = true }
		s.start().create(product.Spec{}, configMap("one", "1"))
		first := s.is("Ready", "Ready")
		refused := func(name string) {
			t.Helper()
			p := testenv.Wait(t, s.admin, s.named(name), "refused", func(p *product.Product) bool { return ready(p).Reason == "Singleton" })
			if p.Status.State != "Error" || ready(p).Status != metav1.ConditionFalse || !strings.Contains(ready(p).Message, s.namespace+"/a exists, and there may be one only") {
				t.Errorf("status %+v", p.Status.Status)
			}
		}
		for _, name := range []string{"c", "b"} {
			if err := s.admin.Create(t.Context(), s.named(name)); err != nil {
				t.Fatal(err)
			}
			refused(name)
		}
		s.stop() // another process comes to the same result
		s.start()
		s.patch(`{"metadata":{"annotations":{"trimtab.dev/reconcile":"now"}}}`)
		after := s.await("reconciled", func(p *product.Product) bool { return p.Status.HandledReconcile == "now" })
		if ready(after).Status != metav1.ConditionTrue || after.Status.AppliedGeneration != first.Generation {
			t.Errorf("status %+v", after.Status.Status)
		}
		refused("b")
		refused("c")
		s.delete()
		testenv.Gone(t, s.admin, s.named("a"), "deleted")
		// The next is the one that was created first or, within the same second, the first by name.
		testenv.Wait(t, s.admin, s.named(s.eldest("b", "c")), "ready", func(p *product.Product) bool { return p.Status.State == "Ready" })
	})
}

// eldest is the older of two components.
func (s *shop) eldest(a, b string) string {
	s.t.Helper()
	first, second := s.named(a), s.named(b)
	for _, p := range []*product.Product{first, second} {
		if err := s.admin.Get(s.t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			s.t.Fatal(err)
		}
	}
	if second.CreationTimestamp.Before(&first.CreationTimestamp) {
		return b
	}
	return a
}

// TestSchemeBuilder: typed objects of a group that only the generator or the options know.
func TestSchemeBuilder(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*shop){
		"004-35 of the options":   func(s *shop) { s.options.SchemeBuilder = schemeFunc(bundle.AddToScheme) },
		"004-24 of the generator": func(s *shop) { s.builder = schemeFunc(bundle.AddToScheme) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSlowShop(t)
			change(s)
			s.generator.do = func(context.Context, call) ([]client.Object, error) {
				inner := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}
				inner.Spec.Objects = []runtime.RawExtension{{Raw: []byte(`{"a":"b"}`)}}
				return []client.Object{inner}, nil
			}
			s.start().create(product.Spec{})
			s.is("Ready", "Ready")
			inner := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "slow"}}
			if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(inner), inner); err != nil || len(inner.Spec.Objects) != 1 {
				t.Errorf("%v: %v", err, inner.Spec)
			}
			if s.mgr.GetScheme().Recognizes(bundle.GroupVersion.WithKind("Bundle")) {
				t.Error("the manager's scheme was changed")
			}
		})
	}
}

type schemeFunc func(*runtime.Scheme) error

func (f schemeFunc) AddToScheme(s *runtime.Scheme) error { return f(s) }

// TestInstall: a large component is installed with few writes of its status.
func TestInstall(t *testing.T) {
	t.Parallel()
	const many = 500
	s := newShop(t).start()
	var objects []client.Object
	for i := range many {
		objects = append(objects, configMap(fmt.Sprintf("m%03d", i), "1"))
	}
	s.create(product.Spec{}, objects...)
	s.is("Ready", "Ready")
	t.Run("B-41 at most ten writes of the status", func(t *testing.T) {
		writes := s.requests.Select(func(r testenv.Request) bool { return r.IsWrite() && r.Resource == "products" })
		if len(writes) > 10 {
			t.Errorf("%d writes of the component", len(writes))
		}
		dependents := s.requests.Select(func(r testenv.Request) bool { return r.IsWrite() && r.Resource == "configmaps" })
		if len(dependents) != many {
			t.Errorf("%d writes of dependents, want %d; those of the component: %v", len(dependents), many, writes)
		}
	})
}
