package component_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
)

var (
	_ component.Component = (*product.Product)(nil) // its accessors are generated
	_ component.Component = (*parcel)(nil)          // these are written by hand
)

// parcel is a component whose parameters have nothing to do with its spec.
type parcel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   product.Spec   `json:"spec"`
	Status product.Status `json:"status,omitzero"`

	cargo cargo
}

// cargo is the same map in every copy of a parcel.
type cargo map[string]any

// ToUnstructured implements component.Unstructurable. It does not copy.
func (c cargo) ToUnstructured() map[string]any { return c }

func (p *parcel) GetSpec() component.Unstructurable { return p.cargo }

func (p *parcel) GetStatus() *component.Status { return &p.Status.Status }

// DeepCopyObject implements runtime.Object.
func (p *parcel) DeepCopyObject() runtime.Object {
	out := &parcel{TypeMeta: p.TypeMeta, cargo: p.cargo}
	p.DeepCopyInto(&out.ObjectMeta)
	p.Spec.DeepCopyInto(&out.Spec)
	p.Status.DeepCopyInto(&out.Status)
	return out
}

// TestAccessors: how a component says what its parameters are is up to its type.
func TestAccessors(t *testing.T) {
	t.Parallel()
	pristine := func() cargo {
		return cargo{
			"text": "x", "number": 1, "small": 0.5, "list": []any{"a", map[string]any{"b": []any{nil, true}}}, "typed": []string{"c"},
			"function": func() {}, // the generator knows what to do with it
		}
	}
	digest := func(c cargo) string {
		c = maps.Clone(c)
		delete(c, "function")
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d %x", len(c), sha256.Sum256(text))
	}
	s := newShop(t)
	shared := pristine()
	var passes atomic.Int64
	var gone atomic.Bool
	s.generator.do = func(_ context.Context, c call) ([]client.Object, error) {
		got, ok := c.parameters.(cargo)
		if !ok || got["function"] == nil || digest(got) != digest(pristine()) {
			t.Errorf("the generator got %v", c.parameters)
		}
		switch n := passes.Load(); {
		case n > 30 && n < 40:
			return nil, errors.New("no luck")
		case n > 40 && n < 50:
			return nil, component.NewRetriableError(errors.New("busy"), new(time.Millisecond))
		}
		return []client.Object{configMap("one", "1")}, nil
	}
	startAs(s, &parcel{}, &listOf[parcel]{}, func(r *component.Reconciler[*parcel]) {
		r.WithPostReadHook(func(_ context.Context, _ client.Client, p *parcel) error { p.cargo = shared; passes.Add(1); return nil })
		r.WithPostDeleteHook(func(context.Context, client.Client, *parcel) error {
			if !gone.Load() {
				return component.NewRetriableError(errors.New("not yet"), new(time.Millisecond))
			}
			return nil
		})
	}, func(o *component.Options[*parcel]) { o.RequeueInterval = time.Millisecond })
	s.create(product.Spec{})
	t.Run("004-03 written by hand", func(*testing.T) { s.is("Ready", "Ready") })
	t.Run("004-04 the parameters are the same after 100 passes", func(t *testing.T) {
		within(t, "100 passes", func() bool { return passes.Load() > 100 })
		s.delete()
		s.is("DeletionPending", "DeletionRetrying")
		deleting := passes.Load()
		within(t, "passes of the deletion", func() bool { return passes.Load() > deleting+10 })
		gone.Store(true)
		testenv.Gone(t, s.admin, s.named("a"), "deleted")
		if got := digest(shared); got != digest(pristine()) {
			t.Errorf("the parameters became %v", shared)
		}
	})
}

// loud is a Product that says in annotations what its spec says, too.
type loud struct{ product.Product }

func (l *loud) DeepCopyObject() runtime.Object { return &loud{*l.DeepCopy()} }

func (l *loud) says(what string) string { return l.Annotations["says/"+what] }

func (l *loud) duration(what string) time.Duration {
	d, _ := time.ParseDuration(l.says(what))
	return d
}

func (l *loud) GetDeploymentNamespace() string    { return l.says("namespace") }
func (l *loud) GetDeploymentName() string         { return l.says("name") }
func (l *loud) GetKubeConfig() []byte             { return []byte(l.says("kubeconfig")) }
func (l *loud) GetImpersonationUser() string      { return l.says("user") }
func (l *loud) GetImpersonationGroups() []string  { return strings.Fields(l.says("groups")) }
func (l *loud) IsSuspended() bool                 { return l.says("suspended") == "true" }
func (l *loud) GetRequeueInterval() time.Duration { return l.duration("requeue") }
func (l *loud) GetRetryInterval() time.Duration   { return l.duration("retry") }
func (l *loud) GetTimeout() time.Duration         { return l.duration("timeout") }

func (l *loud) GetAdoptionPolicy() api.AdoptionPolicy { return api.AdoptionPolicy(l.says("adoption")) }
func (l *loud) GetUpdatePolicy() api.UpdatePolicy     { return api.UpdatePolicy(l.says("update")) }
func (l *loud) GetDeletePolicy() api.DeletePolicy     { return api.DeletePolicy(l.says("delete")) }
func (l *loud) GetMissingNamespacesPolicy() api.NamespacePolicy {
	return api.NamespacePolicy(l.says("namespaces"))
}

// quiet is a spec that says everything otherwise.
func quiet() product.Spec {
	long := &metav1.Duration{Duration: 100 * time.Hour}
	return product.Spec{
		PlacementSpec: api.PlacementSpec{Namespace: "spec", Name: "spec"}, SuspensionSpec: api.SuspensionSpec{Suspend: true},
		ClientSpec:        api.ClientSpec{KubeConfig: &api.KubeConfigSpec{SecretRef: api.SecretKeyReference{Name: "garbage"}}},
		ImpersonationSpec: api.ImpersonationSpec{ServiceAccountName: "spec"},
		RequeueSpec:       api.RequeueSpec{RequeueInterval: long}, RetrySpec: api.RetrySpec{RetryInterval: long}, TimeoutSpec: api.TimeoutSpec{Timeout: long},
		PolicySpec: api.PolicySpec{AdoptionPolicy: "Never", UpdatePolicy: "Recreate", DeletePolicy: "Orphan", MissingNamespacesPolicy: "Create"},
	}
}

// TestPrecedence: what a component says of itself counts more than what its spec says.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	s := newSlowShop(t)
	where, user := testenv.Namespace(t, s.cfg), s.namespace+"-user"
	grant(t, s.admin, userSubject(user))
	manager := testenv.User(t, s.cfg, impersonator())
	says := map[string]string{
		"namespace": where, "name": "own", "kubeconfig": string(kubeconfig(t, manager)), "user": user, "groups": "one two", "suspended": "false",
		"requeue": "10ms", "retry": "10ms", "timeout": "1h", "adoption": "always", "update": "ssa-merge", "delete": "orphan-on-apply", "namespaces": "do-not-create",
	}
	garbage := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "garbage"}, Data: map[string][]byte{"value": []byte("garbage")}}
	if err := s.admin.Create(t.Context(), garbage); err != nil {
		t.Fatal(err)
	}
	var who authenticationv1.SelfSubjectReview
	s.generator.do = func(ctx context.Context, c call) ([]client.Object, error) {
		target, err := component.ClientFromContext(ctx)
		if err != nil {
			return nil, err
		}
		who = authenticationv1.SelfSubjectReview{}
		return []client.Object{configMap("one", "1")}, target.Create(ctx, &who)
	}
	startAs(s, &loud{}, &listOf[loud]{}, nil, nil)
	obj := &loud{product.Product{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "a"}, Spec: quiet()}}
	obj.Annotations = map[string]string{}
	for what, value := range says {
		obj.Annotations["says/"+what] = value
	}
	if err := s.admin.Create(t.Context(), &obj.Product); err != nil {
		t.Fatal(err)
	}
	p := s.is("Ready", "Ready")
	t.Run("004-20 the component's own counts", func(t *testing.T) {
		t.Run("SuspensionConfiguration", func(t *testing.T) {})
		t.Run("PlacementConfiguration", func(t *testing.T) {
			if got := s.generator.last(); got.namespace != where || got.name != "own" {
				t.Errorf("generated for %s/%s", got.namespace, got.name)
			}
		})
		t.Run("ClientConfiguration and ImpersonationConfiguration", func(t *testing.T) {
			s.stop() // who is at rest
			if got := who.Status.UserInfo; got.Username != user || !slices.Contains(got.Groups, "one") || !slices.Contains(got.Groups, "two") {
				t.Errorf("the dependents are written by %+v", got)
			}
			startAs(s, &loud{}, &listOf[loud]{}, nil, nil)
		})
		t.Run("PolicyConfiguration", func(t *testing.T) {
			want := api.Policies{AdoptionPolicy: "always", ReconcilePolicy: "on-object-change", UpdatePolicy: "ssa-merge", DeletePolicy: "orphan-on-apply"}
			if diff := cmp.Diff(want, p.Status.Inventory[0].Policies); diff != "" {
				t.Errorf("policies (-want +got):\n%s", diff)
			}
		})
		t.Run("RequeueConfiguration", func(*testing.T) { s.passes(20) })
		s.loudly(t)
	})
}

// loudly checks what only shows when something is wrong.
func (s *shop) loudly(t *testing.T) {
	t.Helper()
	t.Run("PolicyConfiguration for namespaces", func(t *testing.T) {
		elsewhere := configMap("two", "1")
		elsewhere.Namespace = s.namespace + "-missing"
		s.generator.set("2", func(context.Context, call) ([]client.Object, error) { return []client.Object{elsewhere}, nil })
		s.await("the namespace is missing", func(p *product.Product) bool {
			return p.Status.State == "Error" && strings.Contains(p.Status.Message, elsewhere.Namespace+" does not exist")
		})
	})
	t.Run("RetryConfiguration", func(*testing.T) {
		s.generator.set("3", func(context.Context, call) ([]client.Object, error) {
			return nil, component.NewRetriableError(errors.New("busy"), nil)
		})
		s.is("Pending", "Retrying")
		s.passes(20)
	})
	t.Run("TimeoutConfiguration", func(*testing.T) {
		s.generator.set("4", func(context.Context, call) ([]client.Object, error) { return []client.Object{s.slow()}, nil })
		s.await("processing", func(p *product.Product) bool { return p.Status.State == "Processing" || p.Status.State == "Error" })
		s.patch(`{"metadata":{"annotations":{"says/timeout":"1ms","trimtab.dev/reconcile":"now"}}}`)
		s.is("Error", "Timeout")
	})
}
