package testenv_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/testenv"
)

const shopCRDs = `
# a comment before the first document
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: shops.testenv.trimtab.dev
  creationTimestamp: null
spec:
  group: testenv.trimtab.dev
  scope: Namespaced
  names: {kind: Shop, listKind: ShopList, plural: shops, singular: shop}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: testenv-beside-the-crd, namespace: default}
`

func shop(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("testenv.trimtab.dev/v1")
	u.SetKind("Shop")
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestStartSharesOneServer(t *testing.T) {
	a, b := testenv.Start(t), testenv.Start(t)
	if a == b {
		t.Error("two calls answer the same configuration, so that a change of one would show in the other")
	}
	if a.Host != b.Host {
		t.Errorf("two servers, %s and %s, where one is enough", a.Host, b.Host)
	}
}

func TestNamespaceIsDeletedAtTheEnd(t *testing.T) {
	cfg := testenv.Start(t)
	// Under another name it is a server that somebody else started, and that stays.
	other := rest.CopyConfig(cfg)
	other.Host = strings.Replace(cfg.Host, "127.0.0.1", "localhost", 1)
	var name, kept string
	t.Run("With a Long/Name_"+strings.Repeat("x", 80), func(t *testing.T) {
		name, kept = testenv.Namespace(t, other), testenv.Namespace(t, cfg)
	})
	if want := "testnamespaceisdeletedattheend-with-a-long-name-xx-"; !strings.HasPrefix(name, want) {
		t.Errorf("namespace is called %q, want %q and a suffix", name, want)
	}
	c := testenv.Client(t, cfg)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err == nil && ns.DeletionTimestamp.IsZero() {
		t.Errorf("namespace %q is not being deleted", name)
	}
	ns = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kept}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); ends() && (err != nil || !ns.DeletionTimestamp.IsZero()) {
		t.Errorf("namespace %q is deleted with %s, on a server that ends with the tests (%v)", kept, ns.DeletionTimestamp, err)
	}
}

// ends reports whether the server ends with the tests.
func ends() bool {
	return os.Getenv(testenv.EnvKubeconfig)+os.Getenv(testenv.EnvAssets) == "" || os.Getenv(testenv.EnvThrowaway) != ""
}

// TestThrowaway proves that namespaces stay in a cluster of others that is removed after the tests: it runs
// TestNamespaceIsDeletedAtTheEnd on such a cluster.
func TestThrowaway(t *testing.T) {
	cfg := testenv.Start(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNamespaceIsDeletedAtTheEnd$")
	cmd.Env = append(cmd.Environ(), testenv.EnvKubeconfig+"="+testenv.Kubeconfig(t, cfg), testenv.EnvThrowaway+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestInstallServesAtOnce(t *testing.T) {
	cfg := testenv.Start(t)
	files := fstest.MapFS{
		"README.md":       {Data: []byte("not an object")},
		"bases/shop.yaml": {Data: []byte(shopCRDs)},
	}
	c := testenv.Client(t, cfg)
	ns := testenv.Namespace(t, cfg)
	for range 2 {
		testenv.InstallFS(t, cfg, files)
		if err := c.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "testenv.trimtab.dev/v1", "kind": "Shop",
			"metadata": map[string]any{"namespace": ns, "generateName": "x"},
		}}); err != nil {
			t.Errorf("create a shop right after: %v", err)
		}
	}
	beside := configMap("default", "testenv-beside-the-crd")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(beside), beside); err != nil {
		t.Errorf("the file's second object: %v", err)
	}
}

func TestWait(t *testing.T) {
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, fstest.MapFS{"shop.yaml": {Data: []byte(shopCRDs)}})
	c := testenv.Client(t, cfg)
	ns := testenv.Namespace(t, cfg)

	t.Run("typed, created and changed while waited for", func(t *testing.T) {
		errs := make(chan error, 1)
		go func() {
			obj := configMap(ns, "typed")
			err := c.Create(t.Context(), obj)
			if err == nil {
				obj.Data = map[string]string{"n": "2"}
				err = c.Update(t.Context(), obj)
			}
			errs <- err
		}()
		got := testenv.Wait(t, c, configMap(ns, "typed"), "n to be 2", func(m *corev1.ConfigMap) bool { return m.Data["n"] == "2" })
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
		if got.Data["n"] != "2" || got.UID == "" {
			t.Errorf("answers %v, not the state that was waited for", got)
		}
	})
	t.Run("unstructured, there already", func(t *testing.T) {
		if err := c.Create(t.Context(), shop(ns, "there")); err != nil {
			t.Fatal(err)
		}
		got := testenv.Wait(t, c, shop(ns, "there"), "the shop", func(u *unstructured.Unstructured) bool { return u.GetUID() != "" })
		if got.GetName() != "there" {
			t.Errorf("answers %v", got)
		}
	})
	t.Run("gone", func(t *testing.T) {
		obj := configMap(ns, "goes")
		obj.Finalizers = []string{"testenv.trimtab.dev/held"}
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		testenv.Wait(t, c, obj, "the deletion mark", func(m *corev1.ConfigMap) bool { return m.DeletionTimestamp != nil })
		errs := make(chan error, 1)
		go func() {
			errs <- c.Patch(t.Context(), configMap(ns, "goes"), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		}()
		testenv.Gone(t, c, obj, "the end")
		testenv.Gone(t, c, obj, "the end, which was before")
		if err := <-errs; err != nil {
			t.Error(err)
		}
	})
}

// TestGoneWithItsDefinition: an object goes with the definition of its kind, before or while a test waits.
func TestGoneWithItsDefinition(t *testing.T) {
	cfg := testenv.Start(t)
	c := testenv.Client(t, cfg)
	ns := testenv.Namespace(t, cfg)
	testenv.InstallFS(t, cfg, fstest.MapFS{"crds.yaml": {Data: []byte(strings.NewReplacer("shops.testenv", "shops.gone.testenv", "group: testenv", "group: gone.testenv").Replace(shopCRDs))}})
	obj := shop(ns, "goes")
	obj.SetAPIVersion("gone.testenv.trimtab.dev/v1")
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("shops.gone.testenv.trimtab.dev")
	errs := make(chan error, 1)
	go func() { errs <- c.Delete(t.Context(), crd) }()
	testenv.Gone(t, c, obj, "deleted with its definition")
	testenv.Gone(t, c, crd, "the definition to go")
	for { // for a moment the server still serves the kind
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj.DeepCopy()); apierrors.IsNotFound(err) && !strings.Contains(err.Error(), `"goes" not found`) {
			break
		}
	}
	testenv.Gone(t, c, obj, "deleted before with its definition")
	if err := <-errs; err != nil {
		t.Error(err)
	}
}

// TestWaitNeedsANamespace: without one, the objects of that name in all namespaces would be meant, also those of other tests.
func TestWaitNeedsANamespace(t *testing.T) {
	cfg := testenv.Start(t)
	c := testenv.Client(t, cfg)
	said := failure(t.Context(), func(t testing.TB) {
		t.Helper()
		testenv.Gone(t, c, configMap("", "anywhere"), "deleted")
	})
	if !strings.Contains(said, "*v1.ConfigMap anywhere has no namespace") {
		t.Errorf("said %q", said)
	}
}

func TestWaitSaysWhatItSawLast(t *testing.T) {
	cfg := testenv.Start(t)
	c := testenv.Client(t, cfg)
	ns := testenv.Namespace(t, cfg)
	obj := configMap(ns, "stays")
	obj.Data = map[string]string{"state": "Pending"}
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		why  string
		name string
		says []string
	}{
		"wrong state": {"the state is what the reader needs", "stays", []string{"for the state Ready", "ConfigMap " + ns + "/stays", "state: Pending", "uid:"}},
		"never there": {"or that there is none", "absent", []string{"for the state Ready", "ConfigMap " + ns + "/absent never existed"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			if tt.name == "absent" { // there is nothing to see that could end the wait
				ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
			}
			defer cancel()
			said := failure(ctx, func(t testing.TB) {
				t.Helper()
				testenv.Wait(t, c, configMap(ns, tt.name), "the state Ready", func(*corev1.ConfigMap) bool { cancel(); return false })
			})
			for _, want := range tt.says {
				if !strings.Contains(said, want) {
					t.Errorf("the message lacks %q, but %s:\n%s", want, tt.why, said)
				}
			}
			if strings.Contains(said, "managedFields") {
				t.Errorf("the message holds managed fields, which nobody reads:\n%s", said)
			}
		})
	}
}

func TestUserMayDoWhatTheRulesSay(t *testing.T) {
	cfg := testenv.Start(t)
	ns := testenv.Namespace(t, cfg)
	user := testenv.User(t, cfg,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get"}},
		rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	)
	c := testenv.Client(t, user)
	if err := c.Create(t.Context(), configMap(ns, "mine")); err != nil {
		t.Errorf("create what the rules allow: %v", err)
	}
	if err := c.Delete(t.Context(), configMap(ns, "mine")); !apierrors.IsForbidden(err) {
		t.Errorf("delete, which no rule allows: %v, want forbidden", err)
	}
	if err := c.List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("list secrets, which no rule allows: %v, want forbidden", err)
	}
	nobody := testenv.Client(t, testenv.User(t, cfg))
	if err := nobody.Create(t.Context(), configMap(ns, "theirs")); !apierrors.IsForbidden(err) {
		t.Errorf("create without any rule: %v, want forbidden", err)
	}
}

func TestRequests(t *testing.T) {
	admin := testenv.Start(t)
	testenv.InstallFS(t, admin, fstest.MapFS{"shop.yaml": {Data: []byte(shopCRDs)}})
	ns := testenv.Namespace(t, admin)
	cfg, log := testenv.Requests(admin)
	c := testenv.Client(t, cfg)
	ctx := t.Context()

	obj := configMap(ns, "one")
	obj.Data = map[string]string{"k": "v"}
	must(t, c.Create(ctx, obj))
	must(t, c.Get(ctx, client.ObjectKeyFromObject(obj), obj))
	must(t, c.Update(ctx, obj))
	must(t, c.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"k":"w"}}`))))
	must(t, c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(ns)))
	u := shop(ns, "two")
	must(t, c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test")))
	if err := c.Status().Update(ctx, shop(ns, "two")); err == nil {
		t.Error("the status subresource is there, which the test takes to be absent")
	}
	must(t, c.Delete(ctx, obj))
	must(t, c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(ns)))
	space := &corev1.Namespace{}
	must(t, c.Get(ctx, client.ObjectKey{Name: ns}, space))
	must(t, c.Status().Update(ctx, space))

	var got []string
	for _, r := range log.Select(func(r testenv.Request) bool { return r.Resource != "" }) {
		got = append(got, strings.ReplaceAll(r.String(), ns, "ns"))
	}
	want := []string{
		"create configmaps ns/one 201",
		"get configmaps ns/one 200",
		"update configmaps ns/one 200",
		"patch configmaps ns/one 200",
		"list configmaps ns/ 200",
		"apply shops ns/two 201",
		"update shops/status ns/two 404",
		"delete configmaps ns/one 200",
		"deletecollection configmaps ns/ 200",
		"get namespaces ns 200",
		"update namespaces/status ns 200",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	writes := log.Writes("configmaps", ns, "one")
	var verbs []string
	for _, w := range writes {
		verbs = append(verbs, w.Verb)
	}
	if diff := cmp.Diff([]string{"create", "update", "patch", "delete"}, verbs); diff != "" {
		t.Fatalf("writes (-want +got):\n%s", diff)
	}
	var sent corev1.ConfigMap
	if err := json.Unmarshal(writes[0].Body, &sent); err != nil || sent.Data["k"] != "v" {
		t.Errorf("the first body is %q, %v; want the ConfigMap as JSON", writes[0].Body, err)
	}
	log.Reset()
	if log.String() != "" {
		t.Errorf("after a reset there is %s", log)
	}
}

func TestRequestsCountsWatches(t *testing.T) {
	cfg, log := testenv.Requests(testenv.Start(t))
	ns := testenv.Namespace(t, cfg)
	c := testenv.Client(t, cfg)
	must(t, c.Create(t.Context(), configMap(ns, "seen")))
	w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(ns))
	must(t, err)
	defer w.Stop()
	<-w.ResultChan()
	if got := log.Select(func(r testenv.Request) bool { return r.Verb == "watch" }); len(got) != 1 {
		t.Errorf("watches: %v, want one", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
