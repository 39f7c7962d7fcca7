package component_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
)

// 004-02: what is returned is a reconciler of controller-runtime.
var _ reconcile.Reconciler = component.NewReconciler[*product.Product]("op.test", &generator{}, component.ReconcilerOptions{})

// TestReconciler: a generator behind a custom resource, as a kubebuilder project runs it.
func TestReconciler(t *testing.T) {
	t.Parallel()
	s := newShop(t).start()
	s.create(product.Spec{}, configMap("one", "1"), configMap("two", "1"))
	s.is("Ready", "Ready")
	t.Run("004-14 the target is the component's namespace and name", func(t *testing.T) {
		if got := s.generator.last(); got.namespace != s.namespace || got.name != "a" {
			t.Errorf("generated for %s/%s", got.namespace, got.name)
		}
		if err := s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "one"}, &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("W10 an annotation of somebody else does nothing", func(t *testing.T) {
		before := s.await("", func(*product.Product) bool { return true })
		s.patch(`{"metadata":{"annotations":{"example.org/note":"x"}}}`)
		s.patch(`{"metadata":{"annotations":{"trimtab.dev/reconcile":"x"}}}`)
		after := s.await("reconciled", func(p *product.Product) bool { return p.Status.HandledReconcile == "x" })
		if after.Status.Revision != before.Status.Revision || after.Status.ProcessingDigest != before.Status.ProcessingDigest || after.Status.State != "Ready" {
			t.Errorf("revision %d, digest %s, state %s", after.Status.Revision, after.Status.ProcessingDigest, after.Status.State)
		}
	})
	t.Run("004-30 the set follows the component", func(t *testing.T) {
		s.patch(`{"spec":{"objects":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"value":"2"}},` +
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"three"},"data":{"value":"1"}}]}}`)
		testenv.Wait(t, s.admin, s.configMap("one"), "changed", func(m *corev1.ConfigMap) bool { return m.Data["value"] == "2" })
		testenv.Wait(t, s.admin, s.configMap("three"), "new", func(m *corev1.ConfigMap) bool { return true })
		testenv.Gone(t, s.admin, s.configMap("two"), "removed")
		s.is("Ready", "Ready")
		s.delete()
		testenv.Gone(t, s.admin, s.named("a"), "deleted")
		testenv.Gone(t, s.admin, s.configMap("one"), "deleted")
		testenv.Gone(t, s.admin, s.configMap("three"), "deleted")
	})
}

// TestManagers: the manager may cache what the reconciler works with, or not.
func TestManagers(t *testing.T) {
	t.Parallel()
	managers := map[string]func(*ctrl.Options){
		"004-36 a manager as the seed describes it": func(o *ctrl.Options) {
			o.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{
				&product.Product{}, &apiextensionsv1.CustomResourceDefinition{}, object("apiregistration.k8s.io/v1", "APIService", "", nil),
			}}
		},
		"004-36 a manager that caches everything": func(o *ctrl.Options) { o.Client.Cache = &client.CacheOptions{Unstructured: true} },
	}
	for name, change := range managers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.manager = func(o *ctrl.Options) {
				if err := apiextensionsv1.AddToScheme(o.Scheme); err != nil {
					t.Fatal(err)
				}
				change(o)
			}
			s.start()
			for _, obj := range []client.Object{&apiextensionsv1.CustomResourceDefinition{}, object("apiregistration.k8s.io/v1", "APIService", "", nil)} {
				if _, err := s.mgr.GetCache().GetInformer(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			kind := schema.GroupKind{Group: s.namespace + ".example.org", Kind: "Baz"}
			s.create(product.Spec{}, configMap("one", "1"), plain(kind), object(kind.Group+"/v1", kind.Kind, "ours", nil))
			s.is("Ready", "Ready")
			s.delete()
			testenv.Gone(t, s.admin, s.named("a"), "deleted")
			testenv.Gone(t, s.admin, plain(kind), "deleted")
		})
	}
	t.Run("004-36 a scheme without the kind", func(t *testing.T) {
		t.Parallel()
		s := newShop(t)
		mgr, err := ctrl.NewManager(s.cfg, ctrl.Options{Scheme: runtime.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
		if err != nil {
			t.Fatal(err)
		}
		err = component.NewReconciler[*product.Product](s.operator, s.generator, s.options).SetupWithManager(mgr)
		if err == nil || !strings.Contains(err.Error(), "product.Product") || !strings.Contains(err.Error(), "add its AddToScheme") {
			t.Errorf("error %v, want one that names the kind", err)
		}
	})
}

// TestPlacement: the component says where its dependents go and what they are named after.
func TestPlacement(t *testing.T) {
	t.Parallel()
	s := newShop(t).start()
	other := testenv.Namespace(t, s.cfg)
	elsewhere := configMap("explicit", "1")
	elsewhere.Namespace = s.namespace
	cluster := object("rbac.authorization.k8s.io/v1", "ClusterRole", s.operator, nil)
	cluster.SetNamespace(other)
	s.create(product.Spec{PlacementSpec: api.PlacementSpec{Namespace: other}}, configMap("one", "1"), elsewhere, cluster)
	p := s.is("Ready", "Ready")
	t.Run("004-15 placement", func(t *testing.T) {
		cluster.SetNamespace("")
		testenv.Wait(t, s.admin, cluster, "in no namespace", func(*unstructured.Unstructured) bool { return true })
		for _, item := range p.Status.Inventory {
			if item.Kind == "ClusterRole" && item.Namespace != "" {
				t.Errorf("recorded as %s", item.Key())
			}
		}
		if got := s.generator.last(); got.namespace != other || got.name != "a" {
			t.Errorf("generated for %s/%s, want %s/a", got.namespace, got.name, other)
		}
		for _, key := range []client.ObjectKey{{Namespace: other, Name: "one"}, {Namespace: s.namespace, Name: "explicit"}} {
			if err := s.admin.Get(t.Context(), key, &corev1.ConfigMap{}); err != nil {
				t.Error(err)
			}
		}
		s.patch(`{"spec":{"namespace":"","name":"b"}}`)
		testenv.Wait(t, s.admin, s.configMap("one"), "moved", func(*corev1.ConfigMap) bool { return true })
		if got := s.generator.last(); got.namespace != s.namespace || got.name != "b" {
			t.Errorf("generated for %s/%s, want %s/b", got.namespace, got.name, s.namespace)
		}
		s.delete()
		testenv.Gone(t, s.admin, cluster, "deleted")
	})
}

// TestEmptyResult: a generator that returns nothing has nothing deleted by mistake.
func TestEmptyResult(t *testing.T) {
	t.Parallel()
	s := newShop(t).start()
	t.Run("004-21 Generate", func(t *testing.T) {
		s.create(product.Spec{PlacementSpec: api.PlacementSpec{Name: "b"}, TimeoutSpec: api.TimeoutSpec{Timeout: &metav1.Duration{Duration: time.Hour}}},
			configMap("one", "1"), configMap("two", "1"))
		p := s.is("Ready", "Ready")
		last := s.generator.last()
		if diff := cmp.Diff(&p.Spec, last.parameters); diff != "" || last.namespace != s.namespace || last.name != "b" {
			t.Errorf("generated for %s/%s, parameters (-want +got):\n%s", last.namespace, last.name, diff)
		}
		s.generator.set("2", func(context.Context, call) ([]client.Object, error) { return nil, nil })
		s.patch(`{"metadata":{"annotations":{"trimtab.dev/reconcile":"now"}}}`)
		p = s.await("kept", func(p *product.Product) bool { return ready(p).Reason == "PruneBlocked" })
		for _, name := range []string{"one", "two"} {
			if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(s.configMap(name)), &corev1.ConfigMap{}); err != nil {
				t.Error(err)
			}
		}
		s.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, s.operator+"/allow-prune", p.Generation))
		testenv.Gone(t, s.admin, s.configMap("one"), "deleted")
		testenv.Gone(t, s.admin, s.configMap("two"), "deleted")
		s.is("Ready", "Ready")
	})
}

// TestStatus: what the status of a component says.
func TestStatus(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.hooks = func(r *reconciler) {
		r.WithPostReadHook(func(_ context.Context, _ client.Client, p *product.Product) error {
			p.Status.Note = "of a hook"
			return nil
		})
	}
	s.start()
	s.create(product.Spec{}, configMap("one", "1"))
	first := s.is("Ready", "Ready")
	t.Run("004-06 another field of the status", func(t *testing.T) {
		if first.Status.Note != "of a hook" || len(first.Status.Inventory) != 1 {
			t.Errorf("note %q, inventory %v", first.Status.Note, first.Status.Inventory)
		}
	})
	if first.Status.LastAppliedAt == nil || first.Status.LastObservedAt == nil || first.Status.ProcessingSince != nil || first.Status.Revision != 1 {
		t.Errorf("status %+v", first.Status.Status)
	}
	failing := func(context.Context, call) ([]client.Object, error) { return nil, errors.New("no luck") }
	s.generator.set("", failing)
	s.patch(`{"spec":{"timeout":"61s"}}`)
	failed := s.is("Error", "Error")
	t.Run("004-07 the generation of a failed pass is observed", func(t *testing.T) {
		if failed.Status.ObservedGeneration != failed.Generation || !strings.Contains(failed.Status.Message, "no luck") {
			t.Errorf("observed %d of %d: %s", failed.Status.ObservedGeneration, failed.Generation, failed.Status.Message)
		}
	})
	t.Run("004-08 and not applied", func(t *testing.T) {
		if failed.Status.AppliedGeneration != first.Generation || failed.Generation == first.Generation {
			t.Errorf("applied %d, want %d", failed.Status.AppliedGeneration, first.Generation)
		}
		s.generator.set("", nil)
		s.patch(`{"spec":{"timeout":"62s"}}`)
		if p := s.is("Ready", "Ready"); p.Status.AppliedGeneration != p.Generation {
			t.Errorf("applied %d, want %d", p.Status.AppliedGeneration, p.Generation)
		}
	})
	t.Run("004-10 lastAppliedAt stays while passes fail", func(t *testing.T) {
		if !failed.Status.LastAppliedAt.Equal(first.Status.LastAppliedAt) {
			t.Errorf("applied at %v, want %v", failed.Status.LastAppliedAt, first.Status.LastAppliedAt)
		}
	})
	t.Run("lastObservedAt does not decrease", func(t *testing.T) {
		if failed.Status.LastObservedAt.Before(first.Status.LastObservedAt) {
			t.Errorf("observed at %v after %v", failed.Status.LastObservedAt, first.Status.LastObservedAt)
		}
	})
	t.Run("one condition Ready", func(t *testing.T) {
		if a, b := ready(first), ready(failed); a.Status != metav1.ConditionTrue || b.Status != metav1.ConditionFalse || a.Message == "" || a.LastTransitionTime.IsZero() {
			t.Errorf("conditions %v and %v", a, b)
		}
	})
}

// TestRetries: what is retried when.
func TestRetries(t *testing.T) {
	t.Parallel()
	second, interval := time.Second, func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	for name, test := range map[string]struct {
		spec  product.Spec
		after *time.Duration
		want  time.Duration
	}{
		"the error's own delay":          {product.Spec{RetrySpec: api.RetrySpec{RetryInterval: interval(time.Hour)}}, &second, second},
		"004-52 the retry interval":      {product.Spec{RetrySpec: api.RetrySpec{RetryInterval: interval(second)}}, nil, second},
		"004-52 the requeue interval":    {product.Spec{RequeueSpec: api.RequeueSpec{RequeueInterval: interval(second)}}, nil, second},
		"004-52 neither, the operator's": {product.Spec{}, nil, second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.tune = func(o *component.Options[*product.Product]) { o.RequeueInterval = second }
			times := make(chan time.Time, 100)
			s.generator.do = func(context.Context, call) ([]client.Object, error) {
				times <- time.Now()
				err := errors.Join(errors.New("other"), fmt.Errorf("a: %w", fmt.Errorf("b: %w", component.NewRetriableError(errors.New("busy"), test.after))))
				return nil, err
			}
			s.start()
			s.create(test.spec)
			s.is("Pending", "Retrying")
			last := <-times
			for range 2 {
				next := <-times
				if gap := next.Sub(last); gap < test.want-20*time.Millisecond {
					t.Errorf("retried after %s, want %s", gap, test.want)
				}
				last = next
			}
			s.generator.set("", func(context.Context, call) ([]client.Object, error) { return nil, nil })
			s.is("Ready", "Ready")
		})
	}
	t.Run("004-57 intervals that are negative", func(t *testing.T) {
		t.Parallel()
		s := newShop(t).start()
		s.create(product.Spec{TimeoutSpec: api.TimeoutSpec{Timeout: interval(-second)}})
		if p := s.is("Error", "Error"); !strings.Contains(p.Status.Message, "timeout -1s is negative") {
			t.Errorf("message %s", p.Status.Message)
		}
		s.patch(`{"spec":{"timeout":"30s"}}`)
		s.is("Ready", "Ready")
		s.eventually("a warning about a short interval", func(e string) bool { return strings.Contains(e, "the timeout 30s is less than a minute") })
	})
}

// eventually waits for an event of the component "a".
func (s *shop) eventually(why string, ok func(note string) bool) {
	s.t.Helper()
	events, err := s.admin.Watch(s.t.Context(), &corev1.EventList{}, client.InNamespace(s.namespace))
	if err != nil {
		s.t.Fatal(err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if e, is := event.Object.(*corev1.Event); is && ok(e.Message) {
			return
		}
	}
	s.t.Fatalf("no event: %s", why)
}
