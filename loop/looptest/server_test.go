package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop/looptest"
)

func configMap(name string, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
	for _, c := range change {
		c(m)
	}
	return m
}

func owners(controllers ...string) func(*corev1.ConfigMap) {
	return func(m *corev1.ConfigMap) {
		for _, name := range controllers {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: types.UID(name), Controller: new(true)})
		}
	}
}

// TestRefusals: the server in memory refuses what an API server refuses, and nothing of it is left; what it does not
// support, it says.
func TestRefusals(t *testing.T) {
	t.Parallel()
	merge := func(o client.Object, body string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(body)))
		}
	}
	create := func(o client.Object) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error { return c.Create(ctx, o) }
	}
	list := func(o ...client.ListOption) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error { return c.List(ctx, &corev1.ConfigMapList{}, o...) }
	}
	two := `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"1","controller":true},{"apiVersion":"v1","kind":"A","name":"b","uid":"2","controller":true}]}}`
	tests := map[string]struct {
		do   func(ctx context.Context, c client.Client) error
		is   func(error) bool
		says string
	}{
		"no name":                     {create(configMap("")), apierrors.IsInvalid, "name is required"},
		"a bad name":                  {create(configMap("Bad_Name!")), apierrors.IsInvalid, "RFC 1123"},
		"a bad name of a namespace":   {create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a.b"}}), apierrors.IsInvalid, "must not contain dots"},
		"a bad name of a service":     {create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "1"}}), apierrors.IsInvalid, "DNS-1035"},
		"a bad label":                 {create(configMap("l", func(m *corev1.ConfigMap) { m.Labels = map[string]string{"a": "b c"} })), apierrors.IsInvalid, "labels"},
		"no namespace":                {create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}), apierrors.IsBadRequest, "has no namespace; give it one, or, if its kind is cluster-scoped, set looptest.Cluster.CRDs"},
		"two controllers":             {create(configMap("two", owners("a", "b"))), apierrors.IsInvalid, "Only one reference can have Controller set to true"},
		"two controllers, by a patch": {merge(configMap("m"), two), apierrors.IsInvalid, "Only one reference can have Controller set to true"},
		"two controllers, applied": {func(ctx context.Context, c client.Client) error {
			var refs corev1apply.ConfigMapApplyConfiguration
			if err := json.Unmarshal([]byte(two), &refs); err != nil {
				return err
			}
			return c.Apply(ctx, refs.WithKind("ConfigMap").WithAPIVersion("v1").WithNamespace("n").WithName("m"), client.FieldOwner("test"))
		}, apierrors.IsInvalid, "Only one reference can have Controller set to true"},
		"a new finalizer in a deletion": {merge(tank(), `{"metadata":{"finalizers":["a.b/c","`+finalizer+`"]}}`), apierrors.IsInvalid, "no new finalizers can be added if the object is being deleted"},
		"a bad finalizer":               {merge(configMap("m"), `{"metadata":{"finalizers":["a b"]}}`), apierrors.IsInvalid, "finalizers"},
		"another field":                 {list(client.MatchingFields{"data.a": "b"}), apierrors.IsBadRequest, "looptest selects by metadata.name and metadata.namespace, not by data.a"},
		"orphans": {func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, configMap("m"), client.PropagationPolicy(metav1.DeletePropagationOrphan))
		}, apierrors.IsBadRequest, "looptest does not orphan dependents"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deleting := tank(finalized, func(p *probe.Probe) { p.DeletionTimestamp = new(metav1.Now()) })
			env := looptest.NewEnv(t, tanks{}.controller(), cluster(configMap("m"), deleting))
			before := contents(t, env)
			err := test.do(t.Context(), env.Client())
			if err == nil || !test.is(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want an error with %q", err, test.says)
			}
			if diff := cmp.Diff(before, contents(t, env)); diff != "" {
				t.Errorf("what is there changed (-before +after):\n%s", diff)
			}
		})
	}
}

// contents are the ConfigMaps and Probes of a cluster.
func contents(t *testing.T, env *looptest.Env) (all []string) {
	t.Helper()
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &probe.ProbeList{}, &corev1.ServiceList{}, &corev1.NamespaceList{}} {
		if err := env.Client().List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return all
}

// TestServer: what a server does with writes that it does not refuse.
func TestServer(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, objects ...client.Object) (*looptest.Env, client.Client) {
		t.Helper()
		env := looptest.NewEnv(t, tanks{}.controller(), cluster(objects...))
		return env, env.Client()
	}
	must := func(t *testing.T, errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("a dry run changes nothing, and tells nobody", func(t *testing.T) {
		t.Parallel()
		env, c := start(t, configMap("m"), tank(finalized))
		env.Settle()
		before := contents(t, env)
		m, bigger := configMap("new"), tank()
		must(t, c.Create(t.Context(), m, client.DryRunAll), c.Delete(t.Context(), configMap("m"), client.DryRunAll), c.Delete(t.Context(), tank(), client.DryRunAll),
			c.Patch(t.Context(), bigger, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":7}}`)), client.DryRunAll),
			c.Apply(t.Context(), corev1apply.ConfigMap("m", "n").WithData(map[string]string{"a": "b"}), client.FieldOwner("test"), client.DryRunAll))
		if bigger.Spec.Size != 7 || m.Name != "new" {
			t.Errorf("answered with size %d and name %q, not with what would be", bigger.Spec.Size, m.Name)
		}
		if diff := cmp.Diff(before, contents(t, env)); diff != "" {
			t.Errorf("what is there changed (-before +after):\n%s", diff)
		}
		if passes := env.Settle(); len(passes) > 0 {
			t.Errorf("passes %v", passes)
		}
		if err := c.Create(t.Context(), configMap("m"), client.DryRunAll); !apierrors.IsAlreadyExists(err) {
			t.Errorf("a dry run of what is refused: %v", err)
		}
	})
	t.Run("a write that changes nothing makes no version", func(t *testing.T) {
		t.Parallel()
		_, c := start(t, configMap("m"))
		m := configMap("m")
		apply := func(data string) error {
			return c.Apply(t.Context(), corev1apply.ConfigMap("m", "n").WithData(map[string]string{"a": data}), client.FieldOwner("test"))
		}
		must(t, apply("b"), c.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		version := m.ResourceVersion
		must(t, c.Update(t.Context(), m), c.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{}`))), apply("b"),
			c.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		if m.ResourceVersion != version {
			t.Errorf("version %s after version %s", m.ResourceVersion, version)
		}
		if must(t, apply("c"), c.Get(t.Context(), client.ObjectKeyFromObject(m), m)); m.ResourceVersion == version || m.Data["a"] != "c" {
			t.Errorf("after a change: version %s, data %v", m.ResourceVersion, m.Data)
		}
	})
	t.Run("an update without a UID is of the same object", func(t *testing.T) {
		t.Parallel()
		_, c := start(t, configMap("m"))
		before, after := configMap("m"), configMap("m", func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} })
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(before), before), c.Update(t.Context(), after))
		if after.UID != before.UID || !after.CreationTimestamp.Equal(&before.CreationTimestamp) {
			t.Errorf("UID %s after %s, created %s after %s", after.UID, before.UID, after.CreationTimestamp, before.CreationTimestamp)
		}
	})
	t.Run("a new object has no status", func(t *testing.T) {
		t.Parallel()
		_, c := start(t)
		p := tank(func(p *probe.Probe) { p.Status.Note = "mine" })
		if must(t, c.Create(t.Context(), p)); p.Status.Note != "" || p.Generation != 1 {
			t.Errorf("note %q, generation %d", p.Status.Note, p.Generation)
		}
	})
	t.Run("names are generated, and those of roles have colons", func(t *testing.T) {
		t.Parallel()
		_, c := start(t)
		m := configMap("", func(m *corev1.ConfigMap) { m.GenerateName = "x-" })
		must(t, c.Create(t.Context(), m), c.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:a"}}))
		if !strings.HasPrefix(m.Name, "x-") {
			t.Errorf("the name is %q", m.Name)
		}
	})
	t.Run("objects are listed by their names", func(t *testing.T) {
		t.Parallel()
		_, c := start(t, configMap("m"), configMap("o"))
		found := &corev1.ConfigMapList{}
		if must(t, c.List(t.Context(), found, client.MatchingFields{"metadata.name": "o", "metadata.namespace": "n"})); len(found.Items) != 1 || found.Items[0].Name != "o" {
			t.Errorf("found %v", found.Items)
		}
	})
}

// TestKinds: kinds are as their CRDs say.
func TestKinds(t *testing.T) {
	t.Parallel()
	given := looptest.Cluster{
		AddToScheme: func(s *runtime.Scheme) error { return errors.Join(probe.AddToScheme(s), thing.AddToScheme(s)) }, CRDs: thing.CRDs,
		Objects: []client.Object{&thing.ClusterProvider{ObjectMeta: metav1.ObjectMeta{Name: "c"}}},
	}
	env := looptest.NewEnv(t, tanks{}.controller(), given)
	c := env.Client()
	for _, o := range []client.Object{
		&thing.ClusterProvider{ObjectMeta: metav1.ObjectMeta{Name: "d"}},                                      // cluster-scoped
		&thing.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, Spec: thing.ProviderSpec{}}, // has fields that are not exported
		tank(), // has no CRD
	} {
		if err := errors.Join(c.Create(t.Context(), o), c.Get(t.Context(), client.ObjectKeyFromObject(o), o)); err != nil {
			t.Errorf("%T: %v", o, err)
		}
	}
	whole := &thing.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
	if err := c.Status().Update(t.Context(), whole); !apierrors.IsNotFound(err) {
		t.Errorf("the status of a kind that has no such subresource: %v", err)
	}
	found := &thing.ClusterProviderList{}
	if err := c.List(t.Context(), found); err != nil || len(found.Items) != 2 {
		t.Errorf("found %d ClusterProviders, %v", len(found.Items), err)
	}
}
