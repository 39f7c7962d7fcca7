package component_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	s.create(product.Spec{}, s.slow())
	s.is("Processing", "Processing")
	if n := finished.Load(); n != 0 {
		t.Errorf("the post-reconcile hook was called %d times before the dependents were ready", n)
	}
	s.finish(metav1.ConditionTrue)
	s.is("Ready", "Ready")
	if finished.Load() == 0 {
		t.Error("the post-reconcile hook was not called")
	}
	s.patch(`{"spec":{"suspend":true}}`)
	s.is("Pending", "Suspended")
	s.patch(`{"spec":{"suspend":false,"settings":{"name":"settings-of-a"}}}`)
	s.is("Pending", "Retrying")
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings-of-a"}, Data: map[string]string{"a": "b"}}
	if err := s.admin.Create(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	s.is("Ready", "Ready")
	s.finish(metav1.ConditionFalse)
	s.is("Processing", "Processing")
	s.patch(`{"spec":{"timeout":"1ms"}}`)
	s.is("Error", "Timeout")
	t.Run("004-54 after the timeout it can still become ready", func(t *testing.T) {
		s.finish(metav1.ConditionTrue)
		s.is("Ready", "Ready")
	})
	s.generator.set("x", func(context.Context, call) ([]client.Object, error) { return nil, errors.New("no luck") })
	s.patch(`{"spec":{"timeout":"1h"}}`)
	s.is("Error", "Error")
	s.generator.set("", nil)
	s.is("Ready", "Ready")

	failWith(component.NewRetriableError(errors.New("busy"), new(50*time.Millisecond)))
	s.patch(`{"metadata":{"finalizers":["` + s.operator + `/finalizer","example.org/theirs"]}}`)
	s.delete()
	s.is("Deleting", "DeletionBlocked")
	s.finalizers("/metadata/finalizers/1", "slow-holder")
	s.is("DeletionPending", "DeletionRetrying")
	failWith(errors.New("no luck"))
	s.is("Error", "Error")
	failWith(nil)
	s.is("Deleting", "DeletionProcessing")
	slow := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "slow"}}
	if err := s.admin.Patch(t.Context(), slow, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	testenv.Gone(t, s.admin, s.named("a"), "deleted")
	t.Run("the states and reasons", func(t *testing.T) {
		got := seen()
		for _, want := range []string{
			"Pending FirstSeen", "Pending Suspended", "Pending Retrying", "Processing Processing", "Processing Restarting", "Ready Ready",
			"Error Error", "Error Timeout", "DeletionPending DeletionRetrying", "Deleting DeletionBlocked", "Deleting DeletionProcessing",
		} {
			if !got[want] {
				t.Errorf("%s did not occur", want)
			}
			delete(got, want)
		}
		delete(got, " ") // before the first pass
		if len(got) > 0 {
			t.Errorf("others occurred: %v", got)
		}
	})
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

// record watches the component from the start and returns every state with its reason that it had.
func (s *shop) record() func() map[string]bool {
	s.t.Helper()
	events, err := s.admin.Watch(s.t.Context(), &product.ProductList{}, client.InNamespace(s.namespace))
	if err != nil {
		s.t.Fatal(err)
	}
	done := make(chan map[string]bool)
	go func() {
		seen := map[string]bool{}
		defer func() { done <- seen }()
		for event := range events.ResultChan() {
			p, ok := event.Object.(*product.Product)
			if !ok {
				return
			}
			if seen[p.Status.State+" "+ready(p).Reason] = true; event.Type == "DELETED" {
				return
			}
		}
	}()
	return func() map[string]bool { defer events.Stop(); return <-done }
}

// TestTimeout: the time counts from the last change of the component or of its manifests.
func TestTimeout(t *testing.T) {
	t.Parallel()
	s := newSlowShop(t)
	s.tune = func(o *component.Options[*product.Product]) { o.RequeueInterval = 3 * time.Second }
	s.start()
	s.create(product.Spec{Settings: &api.ConfigMapReference{Name: "in"}}, s.slow())
	settings := s.configMap("in")
	settings.Data = map[string]string{"a": "1"}
	if err := s.admin.Create(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	began := s.is("Processing", "Processing").Status.ProcessingSince.Time
	t.Run("manifests that change restart the timer", func(t *testing.T) {
		testenv.Wait(t, s.admin, s.configMap("settings"), "rendered", func(*corev1.ConfigMap) bool { return true })
		<-time.After(time.Until(began.Add(2 * time.Second)))
		if err := s.admin.Patch(t.Context(), s.configMap("in"), client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"2"}}`))); err != nil {
			t.Fatal(err)
		}
		p := s.await("restarted", func(p *product.Product) bool {
			return p.Status.ProcessingSince != nil && p.Status.ProcessingSince.After(began) && p.Status.State == "Processing"
		})
		again := p.Status.ProcessingSince.Time
		late := s.is("Error", "Timeout")
		if at := ready(late).LastTransitionTime; at.Sub(again) < 2*time.Second {
			t.Errorf("timed out at %s, want 3 s after %s", at, again)
		}
		if !strings.Contains(late.Status.Message, "not ready after 3s") {
			t.Errorf("message %s", late.Status.Message)
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
	for _, only := range []bool{false, true} {
		t.Run(fmt.Sprintf("only one %t", only), func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.tune = func(o *component.Options[*product.Product]) { o.Singleton = only }
			s.start()
			s.create(product.Spec{}, configMap("one", "1"))
			s.is("Ready", "Ready")
			second := s.named("b")
			if err := s.admin.Create(t.Context(), second); err != nil {
				t.Fatal(err)
			}
			want := "Ready"
			if only {
				want = "Error"
			}
			b := testenv.Wait(t, s.admin, s.named("b"), want, func(p *product.Product) bool { return p.Status.State == want })
			if only && !strings.Contains(b.Status.Message, s.namespace+"/a exists, and there may be one only") {
				t.Errorf("message %s", b.Status.Message)
			}
			s.delete()
			testenv.Gone(t, s.admin, s.named("a"), "deleted")
			testenv.Wait(t, s.admin, s.named("b"), "ready", func(p *product.Product) bool { return p.Status.State == "Ready" })
		})
	}
}

// TestSchemeBuilder: typed objects of a group that only the generator or the options know.
func TestSchemeBuilder(t *testing.T) {
	t.Parallel()
	s := newSlowShop(t)
	s.options.SchemeBuilder = schemeFunc(bundle.AddToScheme)
	s.generator.do = func(context.Context, call) ([]client.Object, error) {
		return []client.Object{&bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}}, nil
	}
	t.Run("004-35 of the options", func(t *testing.T) {
		s.start().create(product.Spec{})
		s.is("Ready", "Ready")
	})
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
		if dependents := s.requests.Select(func(r testenv.Request) bool { return r.IsWrite() && r.Resource == "configmaps" }); len(dependents) != many {
			t.Errorf("%d writes of dependents, want %d", len(dependents), many)
		}
	})
}
