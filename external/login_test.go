package external_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
)

// keyring connects with the token to which an object refers.
type keyring struct {
	cloud *cloud
	made  atomic.Int32
}

func (*keyring) Scope(*thing.Thing) (string, error) { return "cloud", nil }

func (*keyring) Credentials(t *thing.Thing) []api.Reference { return []api.Reference{t.Spec.Token} }

func (k *keyring) Connect(_ context.Context, r external.ConnectRequest[*thing.Thing]) (external.ConnectResponse[*cloudClient], error) {
	return k.login(k.cloud.URL, string(r.Object.Spec.Token.Value()))
}

// login refuses a token that no API could accept, and says which one, as careless clients do.
func (k *keyring) login(url, token string) (external.ConnectResponse[*cloudClient], error) {
	if strings.Contains(token, "+") {
		return external.ConnectResponse[*cloudClient]{}, fmt.Errorf("the token %s is malformed", token)
	}
	k.made.Add(1)
	client := &cloudClient{base: url, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, token: token}
	return external.ConnectResponse[*cloudClient]{Client: client, Endpoint: "cloud"}, nil
}

// newKeyringTest starts an operator whose objects log in with the token "creds".
func newKeyringTest(t *testing.T) (*operatorTest, *keyring) {
	t.Helper()
	k := &keyring{}
	w := prepareOperatorTest(t, named{}, func(o *options) { o.Connect, o.Connector = nil, k })
	k.cloud = w.cloud
	w.cloud.token = "t0ken-number-1"
	w.cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return metadataOnly{rt, t} })
	w.start()
	return w, k
}

func withToken(t *thing.Thing) {
	t.Spec.Token = &api.SecretKeyReference{Name: "creds", Key: "token"}
}

func (w *operatorTest) secret(data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "creds"}, StringData: data}
}

// putSecret makes the Secret "creds", or replaces its values.
func (w *operatorTest) putSecret(data map[string]string) {
	w.t.Helper()
	s := w.secret(data)
	err := w.admin.Create(w.t.Context(), s)
	if err != nil {
		s = w.secret(data)
		err = w.admin.Update(w.t.Context(), s)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// unconnected waits until the object "a" says why nothing can be called.
func (w *operatorTest) unconnected(why string) *thing.Thing {
	w.t.Helper()
	return w.await("to fail with "+why, func(o *thing.Thing) bool {
		c := condition(o, "Failed")
		return c.Status == metav1.ConditionTrue && c.Reason == "ConnectFailed" && strings.Contains(c.Message, why) && c.Message == o.Status.Message
	})
}

// TestCredentials is row E0-62.
func TestCredentials(t *testing.T) {
	t.Parallel()
	t.Run("E0-62 credentials from a Secret", func(t *testing.T) {
		t.Parallel()
		w, k := newKeyringTest(t)
		w.create(withToken)
		w.unconnected("cannot connect to the external API: Secret " + w.namespace + "/creds does not exist; create it")
		w.putSecret(map[string]string{"user": "me"})
		w.unconnected(`Secret ` + w.namespace + `/creds has no key "token"; add it`)
		w.putSecret(map[string]string{"token": "t0ken+number+2"})
		w.unconnected("the token (sensitive) is malformed")
		if calls := w.cloud.calls(true); len(calls) > 0 || k.made.Load() > 0 {
			t.Errorf("without credentials: calls %v, %d clients", calls, k.made.Load())
		}
		w.putSecret(map[string]string{"token": "t0ken-number-0"})
		w.await("to be refused", func(o *thing.Thing) bool {
			return strings.Contains(o.Status.Message, "401 unknown token (sensitive)")
		})
		w.putSecret(map[string]string{"token": "t0ken-number-1"})
		w.ready()
		w.nowhere("number-0", "number-1", "number+2")
	})
}

// metadataOnly fails the test if Secrets are listed or watched with their values.
type metadataOnly struct {
	http.RoundTripper
	t *testing.T
}

// RoundTrip implements [http.RoundTripper].
func (w metadataOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/secrets") && r.Method == http.MethodGet && !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		w.t.Errorf("whole Secrets are cached: %s, Accept: %s", r.URL, r.Header.Get("Accept"))
	}
	return w.RoundTripper.RoundTrip(r)
}

// nowhere wants texts in no status, event or trace.
func (w *operatorTest) nowhere(texts ...string) {
	w.t.Helper()
	var all strings.Builder
	w.trace.mu.Lock()
	for _, r := range w.trace.list {
		fmt.Fprintf(&all, "%+v\n", r)
	}
	w.trace.mu.Unlock()
	for _, r := range w.requests.Select(testenv.Request.IsWrite) {
		all.Write(r.Body)
	}
	for _, text := range texts {
		if strings.Contains(all.String(), text) {
			w.t.Errorf("%q is shown somewhere", text)
		}
	}
}

// TestLoginNeeds: an operator needs to read Secrets, and to put finalizers on what objects name, if they do.
func TestLoginNeeds(t *testing.T) {
	t.Parallel()
	needs := func(by external.Connector[*thing.Thing, *cloudClient]) map[string]string {
		n, err := external.New(named{}, options{Connector: by}).Needs(scheme(t))
		if err != nil {
			t.Fatal(err)
		}
		verbs := map[string]string{}
		for _, need := range n {
			if need.Kind == "Secret" || need.Kind == "Provider" {
				verbs[need.Kind] += strings.Join(need.Verbs, " ") + " "
			}
		}
		return verbs
	}
	if diff := cmp.Diff(map[string]string{"Secret": "list watch get "}, needs(&keyring{})); diff != "" {
		t.Errorf("references in the object (-want +got):\n%s", diff)
	}
	config := external.Config[*thing.Thing, *thing.Provider, *cloudClient]{
		Of:          func(*thing.Thing) (types.NamespacedName, error) { return types.NamespacedName{}, nil },
		Credentials: func(p *thing.Provider) []api.Reference { return []api.Reference{&p.Spec.Token} },
		Connect: func(context.Context, *thing.Provider) (external.ConnectResponse[*cloudClient], error) {
			return external.ConnectResponse[*cloudClient]{}, nil
		},
	}
	if diff := cmp.Diff(map[string]string{"Secret": "list watch get ", "Provider": "list watch patch "}, needs(config.Connector())); diff != "" {
		t.Errorf("references in what the object names (-want +got):\n%s", diff)
	}
}

// TestRotation: a new token is used at once, by a new client, and nothing else of a Secret makes one.
func TestRotation(t *testing.T) {
	t.Parallel()
	w, k := newKeyringTest(t)
	w.putSecret(map[string]string{"token": "t0ken-number-1"})
	w.create(withToken)
	w.ready()
	reads := w.cloud.count(http.MethodGet)
	w.patchSecret(`{"metadata":{"labels":{"team":"shop"}},"stringData":{"user":"me"}}`)
	w.awaitCalls(http.MethodGet, reads+1)
	if n := k.made.Load(); n != 1 {
		t.Errorf("%d clients, want the first one, because its token is the same", n)
	}
	w.cloud.with(func() { w.cloud.token = "t0ken-number-2" })
	w.patchSecret(`{"stringData":{"token":"t0ken-number-2"}}`)
	w.awaitCalls(http.MethodGet, reads+2)
	w.resize(3)
	w.ready()
	if n := k.made.Load(); n != 2 {
		t.Errorf("%d clients, want one for each token", n)
	}
	if is(w.get("a"), "Failed", "True") {
		t.Errorf("conditions %+v", w.get("a").Status.Conditions)
	}
}

func (w *operatorTest) patchSecret(body string) {
	w.t.Helper()
	if err := w.admin.Patch(w.t.Context(), w.secret(nil), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}

// TestSecretGone: nothing is called, and what exists is still deleted when it is to go.
func TestSecretGone(t *testing.T) {
	t.Parallel()
	w, _ := newKeyringTest(t)
	w.putSecret(map[string]string{"token": "t0ken-number-1"})
	w.create(withToken)
	w.ready()
	if err := w.admin.Delete(t.Context(), w.secret(nil)); err != nil {
		t.Fatal(err)
	}
	got := w.unconnected("does not exist; create it")
	if !is(got, "Ready", "True") {
		t.Error("the resource is no longer Ready, although nothing is known to be wrong with it")
	}
	w.delete()
	w.gone()
	if w.cloud.get("a") != nil {
		t.Error("the resource is left behind")
	}
}

// provider makes a Provider that refers to the token in "creds".
func (w *operatorTest) provider(name string) *thing.Provider {
	return &thing.Provider{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       thing.ProviderSpec{URL: w.cloud.URL, Token: api.SecretKeyReference{Name: "creds", Key: "token"}},
	}
}

func by(provider string) func(*thing.Thing) {
	return func(t *thing.Thing) { t.Spec.Provider = provider }
}

// newProviderTest starts an operator whose objects name a Provider.
func newProviderTest(t *testing.T) (*operatorTest, *keyring) {
	t.Helper()
	k := &keyring{}
	config := external.Config[*thing.Thing, *thing.Provider, *cloudClient]{
		Of: func(t *thing.Thing) (types.NamespacedName, error) {
			return types.NamespacedName{Name: t.Spec.Provider}, nil
		},
		Credentials: func(p *thing.Provider) []api.Reference { return []api.Reference{&p.Spec.Token} },
		Connect: func(_ context.Context, p *thing.Provider) (external.ConnectResponse[*cloudClient], error) {
			return k.login(p.Spec.URL, string(p.Spec.Token.Value()))
		},
	}
	w := prepareOperatorTest(t, named{}, func(o *options) { o.Connect, o.Connector = nil, config.Connector() })
	w.cloud.token = "t0ken-number-1"
	w.start()
	return w, k
}

// TestProvider: objects log in as the object says that they name, which stays as long as they do.
func TestProvider(t *testing.T) {
	t.Parallel()
	w, k := newProviderTest(t)
	w.create(by("cloud"))
	w.unconnected("Provider " + w.namespace + "/cloud does not exist; create it")
	if err := w.admin.Create(t.Context(), w.provider("cloud")); err != nil {
		t.Fatal(err)
	}
	w.unconnected("Secret " + w.namespace + "/creds does not exist; create it")
	if calls := w.cloud.calls(true); len(calls) > 0 {
		t.Errorf("without credentials: calls %v", calls)
	}
	w.putSecret(map[string]string{"token": "t0ken-number-1"})
	w.createAs("b", by("cloud"))
	w.ready()
	w.readyAs("b")
	if n := k.made.Load(); n != 1 {
		t.Errorf("%d clients, want one that both share", n)
	}
	w.cloud.with(func() { w.cloud.token = "t0ken-number-2" })
	w.putSecret(map[string]string{"token": "t0ken-number-2"})
	w.resize(3)
	w.ready()
	if n := k.made.Load(); n != 2 {
		t.Errorf("%d clients, want one for each token", n)
	}
	w.nowhere("number-1", "number-2")

	if err := w.admin.Delete(t.Context(), w.provider("cloud")); err != nil {
		t.Fatal(err)
	}
	w.awaitEvent("stays until nothing refers to it; Thing " + w.namespace + "/a, " + w.namespace + "/b: delete them")
	w.resize(4)
	w.ready() // it works as before meanwhile
	w.delete()
	w.gone()
	if err := w.admin.Delete(t.Context(), w.get("b")); err != nil {
		t.Fatal(err)
	}
	testenv.Gone(t, w.admin, w.provider("cloud"), "the provider to go with the last object that names it")
	if w.cloud.get("a") != nil || w.cloud.get("b") != nil {
		t.Error("a resource is left behind")
	}
}

// TestProviderIsKept: nothing is created before the provider is protected from deletion. One that nothing names is not.
func TestProviderIsKept(t *testing.T) {
	t.Parallel()
	w, _ := newProviderTest(t)
	w.putSecret(map[string]string{"token": "t0ken-number-1"})
	for _, name := range []string{"cloud", "other"} {
		if err := w.admin.Create(t.Context(), w.provider(name)); err != nil {
			t.Fatal(err)
		}
	}
	var kept atomic.Bool
	w.cloud.with(func() {
		w.cloud.before = func(method, _ string) {
			p := w.provider("cloud")
			err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(p), p)
			kept.Store(method != http.MethodPost || err == nil && len(p.Finalizers) == 1 && p.Finalizers[0] == "thing.things.trimtab.dev/in-use")
		}
	})
	w.create(by("cloud"))
	w.ready()
	if !kept.Load() {
		t.Error("the resource was created while the provider was not protected")
	}
	if err := w.admin.Delete(t.Context(), w.provider("other")); err != nil {
		t.Fatal(err)
	}
	testenv.Gone(t, w.admin, w.provider("other"), "a provider that nothing names to go at once")
	// An object that names another one lets the first one go.
	if err := w.admin.Create(t.Context(), w.provider("new")); err != nil {
		t.Fatal(err)
	}
	w.patch(`{"spec":{"provider":"new"}}`)
	w.ready()
	if err := w.admin.Delete(t.Context(), w.provider("cloud")); err != nil {
		t.Fatal(err)
	}
	testenv.Gone(t, w.admin, w.provider("cloud"), "a provider that nothing names any more to go")
}

// TestProviderAcrossRestarts: a provider and the objects that name it are deleted while no operator runs, and the
// operator is killed between their deletions: the resources go before the credentials.
func TestProviderAcrossRestarts(t *testing.T) {
	t.Parallel()
	w, _ := newProviderTest(t)
	w.putSecret(map[string]string{"token": "t0ken-number-1"})
	if err := w.admin.Create(t.Context(), w.provider("cloud")); err != nil {
		t.Fatal(err)
	}
	w.create(by("cloud"))
	w.createAs("b", by("cloud"))
	w.ready()
	w.readyAs("b")
	w.stop()
	for _, obj := range []client.Object{w.provider("cloud"), w.get("a")} {
		if err := w.admin.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.gone()
	w.stop()
	if err := w.admin.Delete(t.Context(), w.get("b")); err != nil {
		t.Fatal(err)
	}
	if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(w.provider("cloud")), &thing.Provider{}); err != nil {
		t.Fatalf("the provider does not wait for the last object: %v", err)
	}
	w.start()
	testenv.Gone(t, w.admin, w.provider("cloud"), "the provider to go with the last object that names it")
	if w.cloud.get("a") != nil || w.cloud.get("b") != nil {
		t.Error("a resource is left behind")
	}
}

// TestClusterProvider: one for all namespaces, with its Secret in the namespace that the operator says.
func TestClusterProvider(t *testing.T) {
	t.Parallel()
	k := &keyring{}
	config := external.Config[*thing.Thing, *thing.ClusterProvider, *cloudClient]{
		Of: func(t *thing.Thing) (types.NamespacedName, error) {
			if t.Spec.Provider == "" {
				return types.NamespacedName{}, errors.New("spec.provider is not set; set it to a ClusterProvider")
			}
			return types.NamespacedName{Name: t.Spec.Provider}, nil
		},
		Credentials: func(p *thing.ClusterProvider) []api.Reference { return []api.Reference{&p.Spec.Token} },
		Connect: func(_ context.Context, p *thing.ClusterProvider) (external.ConnectResponse[*cloudClient], error) {
			return k.login(p.Spec.URL, string(p.Spec.Token.Value()))
		},
	}
	w := prepareOperatorTest(t, named{})
	config.SecretNamespace = w.namespace // that of the operator
	w.options.Connect, w.options.Connector = nil, config.Connector()
	w.cloud.token = "t0ken-number-1"
	w.start()
	w.create()
	w.unconnected("spec.provider is not set; set it to a ClusterProvider")
	p := &thing.ClusterProvider{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: w.provider("").Spec}
	if err := w.admin.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.putSecret(map[string]string{"token": "t0ken-number-1"})
	w.patch(`{"spec":{"provider":"` + w.namespace + `"}}`)
	w.ready()
	if err := w.admin.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if !w.until(func() bool { // events about cluster-scoped objects are in namespace default
		return len(w.requests.Select(func(r testenv.Request) bool {
			return r.Resource == "events" && strings.Contains(string(r.Body), "stays until nothing refers to it; Thing "+w.namespace+"/a")
		})) > 0
	}) {
		t.Error("nothing says why the provider stays")
	}
	w.delete()
	w.gone()
	testenv.Gone(t, w.admin, p, "the provider to go with the last object that names it")
}
