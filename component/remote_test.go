package component_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestRemote has dependents in a second cluster.
func TestRemote(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, test := range map[string]func(*testing.T, *site){
		"004-16 kubeconfig":                                 remoteOrLocal,
		"B-23 remote watches":                               remoteWatches,
		"a cluster that cannot be reached":                  unreachable,
		"a deletion whose cluster cannot be reached":        unreachableDeletion,
		"004-17 impersonation":                              impersonated,
		"004-18 user and groups, each alone":                userAndGroups,
		"004-19 both":                                       both,
		"004-22 the target's client":                        targetClient,
		"B-25 W4 kubeconfigs that are refused":              refusedKubeconfigs,
		"the kubeconfig is gone":                            kubeconfigGone,
		"the kubeconfig is kept":                            kubeconfigKept,
		"B-24 a namespace is deleted":                       namespaceDeleted,
		"a kubeconfig in use":                               secretHeld,
		"a kubeconfig that cannot be protected":             secretUnprotected,
		"a role binding that is gone":                       bindingGone,
		"B-22 W8 discovery":                                 discovery,
		"a rotated kubeconfig":                              rotated,
		"a kubeconfig for another cluster":                  otherCluster,
		"a deletion with the kubeconfig of another cluster": otherClusterDeletion,
		"a kubeconfig for a cluster that is not known":      unknownCluster,
		"a kubeconfig for another cluster, and a function":  otherClusterFunction,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

func remoteOrLocal(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, testenv.Start(t))
	there := testenv.Namespace(t, s.cfg)
	b.secret("there", kubeconfig(t, testenv.User(t, s.cfg, everything())))
	b.component("remote", there, from("there"))
	b.component("local", b.namespace, func(*placedSpec) {})
	b.ready("remote")
	b.ready("local")
	if !has(t, s.admin, there, "remote") || has(t, b.admin, there, "remote") {
		t.Error("the dependent is not in the remote cluster alone")
	}
	if !has(t, b.admin, b.namespace, "local") || has(t, s.admin, b.namespace, "local") {
		t.Error("the dependent is not in the local cluster alone")
	}
	b.delete("remote")
	b.delete("local")
	b.gone("remote")
	b.gone("local")
	if has(t, s.admin, there, "remote") || has(t, b.admin, b.namespace, "local") {
		t.Error("a dependent is left")
	}
}

// remoteWatches: two components with equal kubeconfigs share the clients and watches of a remote cluster, by
// which drift is corrected. When it cannot be reached, nothing is deleted, and it is seldom asked.
func remoteWatches(t *testing.T, s *site) {
	t.Helper()
	passes := &delays{}
	b := newPlacedBench(t, testenv.Start(t), func(b *placedBench) { b.options.Loop.Trace = passes })
	there := testenv.Namespace(t, s.cfg)
	cfg, line := via(t, testenv.User(t, s.cfg, everything()))
	b.secret("there", kubeconfig(t, cfg))
	b.secret("same", kubeconfig(t, cfg))
	began := time.Now()
	b.component("a", there, from("there"))
	b.ready("a")
	work, connections := time.Since(began), line.called()
	b.component("b", there, from("same"))
	b.ready("b")
	if now := line.called(); now != connections {
		t.Errorf("%d connections for two components with equal kubeconfigs, %d for one", now, connections)
	}

	m := configMap("a", "")
	m.Namespace = there
	began = time.Now()
	if err := s.admin.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"2"}}`))); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, s.admin, m, "corrected", func(m *corev1.ConfigMap) bool { return m.Data["value"] == "1" })
	passes.prompt(t, time.Since(began), work)

	began, connections = time.Now(), line.called()
	line.silence(true)
	for _, name := range []string{"a", "b"} {
		b.says(name, "cannot be reached")
		p := b.await(name, "not known", func(p *placed) bool {
			return len(p.Status.Inventory) == 1 && p.Status.Inventory[0].Status == string(health.Unknown)
		})
		if p.Status.State != component.StatePending {
			t.Errorf("state %s: %s", p.Status.State, p.Status.Message)
		}
	}
	<-time.After(3 * time.Second) // a busy loop has its chance
	attempts, within := line.called()-connections, time.Since(began)
	t.Logf("%d attempts to connect within %s", attempts, within)
	// The watch asks twice after each of its growing delays, and a component asks once a second at most, however long it takes.
	if most := 6 + 2*within.Seconds(); float64(attempts) > most {
		t.Errorf("%d attempts to connect within %s, want %.1f at most", attempts, within, most)
	}
	line.silence(false)
	b.ready("a")
	b.ready("b")
	for _, r := range s.sent(t, b.operator) {
		if r.Verb == "delete" {
			t.Errorf("a dependent was deleted: %v", r)
		}
	}
}

func unreachable(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, testenv.Start(t))
	there := testenv.Namespace(t, s.cfg)
	cfg, line := via(t, testenv.User(t, s.cfg, everything()))
	b.secret("there", kubeconfig(t, cfg))
	b.component("a", there, from("there"))
	b.ready("a")
	line.cut()
	p := b.says("a", "cannot be reached")
	if !strings.Contains(p.Status.Message, cfg.Host) || p.Status.State != component.StatePending {
		t.Errorf("state %s: %s", p.Status.State, p.Status.Message)
	}
	if len(p.Status.Inventory) != 1 || p.Status.Inventory[0].Status != string(health.Unknown) {
		t.Errorf("inventory %v, want the object with status Unknown", p.Status.Inventory)
	}
	b.component("new", there, from("there"))
	b.says("new", "cannot be reached")
	b.component("local", b.namespace, func(*placedSpec) {})
	b.ready("local")
	line.mend(t)
	b.ready("a")
	b.ready("new")
	for _, r := range s.sent(t, b.operator) {
		if r.Verb == "delete" {
			t.Errorf("a dependent was deleted: %v", r)
		}
	}
}

func unreachableDeletion(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, testenv.Start(t))
	there := testenv.Namespace(t, s.cfg)
	cfg, line := via(t, testenv.User(t, s.cfg, everything()))
	b.secret("there", kubeconfig(t, cfg))
	b.component("a", there, from("there"))
	b.ready("a")
	line.cut()
	b.delete("a")
	p := b.await("a", "waiting for the cluster", func(p *placed) bool {
		return p.Status.State == component.StateDeletionPending && strings.Contains(p.Status.Message, cfg.Host)
	})
	if len(p.Status.Inventory) != 1 || len(p.Finalizers) != 1 {
		t.Errorf("inventory %v, finalizers %v", p.Status.Inventory, p.Finalizers)
	}
	line.mend(t)
	b.gone("a")
	if has(t, s.admin, there, "a") {
		t.Error("the dependent is left")
	}
}

func rotated(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, testenv.Start(t))
	there := testenv.Namespace(t, s.cfg)
	before, old := via(t, testenv.User(t, s.cfg, everything()))
	after, _ := via(t, testenv.User(t, s.cfg, everything()))
	b.secret("there", kubeconfig(t, before))
	b.component("a", there, from("there"))
	b.ready("a")
	uid := live(t, s.admin, there, "a").UID
	b.secret("there", kubeconfig(t, after))
	soon(t, "the end of the old connections", func() bool { return old.idle() }) // by itself, net/http ends them after 90 s
	old.cut()
	m := live(t, s.admin, there, "a")
	m.Data["value"] = "2"
	if err := s.admin.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, s.admin, m, "corrected", func(m *corev1.ConfigMap) bool { return m.Data["value"] == "1" })
	if live(t, s.admin, there, "a").UID != uid {
		t.Error("the dependent was created again")
	}
	b.ready("a")
}

func live(t *testing.T, c client.Client, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// grant allows a user of a cluster everything about ConfigMaps and Bundles.
func grant(t *testing.T, c client.Client, subject rbacv1.Subject) {
	t.Helper()
	name := "test-" + string(uuid.NewUUID())
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"", "bundles.trimtab.dev"}, Resources: []string{"configmaps", "bundles"}, Verbs: []string{"*"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}
	for _, obj := range []client.Object{role, binding} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

func userSubject(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func groupSubject(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

// dependents are the requests of an operator for dependents.
func dependents(requests []audited) []audited {
	return slices.DeleteFunc(slices.Clone(requests), func(r audited) bool { return r.Object.Resource != "configmaps" })
}

func impersonated(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, s.cfg)
	user := "system:serviceaccount:" + b.namespace + ":sa"
	b.component("a", b.namespace, as(user, "extra"))
	p := b.await("a", "refused", func(p *placed) bool { return p.Status.State == component.StateError })
	for _, word := range []string{"list", "configmaps", user} {
		if !strings.Contains(p.Status.Message, word) {
			t.Errorf("the message %q does not name %q", p.Status.Message, word)
		}
	}
	grant(t, s.admin, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: b.namespace, Name: "sa"})
	b.ready("a")
	b.delete("a")
	b.gone("a")
	own := 0
	for _, r := range s.sent(t, b.operator) {
		switch {
		case strings.Contains(r.Path, "inventory-of"): // the inventories of components are not dependents
		case r.Object.Resource == "configmaps" && (r.Impersonated == nil || r.Impersonated.Name != user || !slices.Contains(r.Impersonated.Groups, "extra")):
			t.Errorf("a request for dependents as %v", r)
		case r.Object.Resource == "placeds" && r.Impersonated != nil:
			t.Errorf("a request for components as %v", r)
		case r.Object.Resource == "placeds":
			own++
		}
	}
	if n := len(dependents(s.sent(t, b.operator))); n < 2 || own == 0 {
		t.Errorf("%d requests for dependents, %d for components", n, own)
	}
}

func userAndGroups(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, s.cfg)
	user, group := b.namespace+"-user", b.namespace+"-group"
	grant(t, s.admin, userSubject(user))
	grant(t, s.admin, groupSubject(group))
	b.component("user", b.namespace, as(user))
	b.component("group", b.namespace, as("", group))
	b.component("neither", b.namespace, as(""))
	for _, name := range []string{"user", "group", "neither"} {
		b.ready(name)
	}
	within(t, "the audit log", func() bool { return len(dependents(s.sent(t, b.operator))) >= 3 })
	for _, r := range dependents(s.sent(t, b.operator)) {
		switch as := r.Impersonated; {
		case r.Object.Name == "user" && (as == nil || as.Name != user || !slices.Equal(as.Groups, []string{"system:authenticated"})),
			// Kubernetes impersonates no groups without a user.
			r.Object.Name == "group" && (as == nil || as.Name != r.User.Name || !slices.Equal(as.Groups, []string{group, "system:authenticated"})),
			r.Object.Name == "neither" && as != nil:
			t.Errorf("%s %s as %v", r.Verb, r.Object.Name, as)
		}
	}
}

func both(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, testenv.Start(t))
	there, user := testenv.Namespace(t, s.cfg), b.namespace+"-user"
	grant(t, s.admin, userSubject(user))
	cfg := testenv.User(t, s.cfg, impersonator())
	b.secret("there", kubeconfig(t, cfg))
	b.component("a", there, func(spec *placedSpec) {
		from("there")(spec)
		as(user, "extra")(spec)
	})
	b.ready("a")
	b.delete("a")
	b.gone("a")
	requests := dependents(s.sent(t, b.operator))
	for _, r := range requests {
		if as := r.Impersonated; !strings.HasSuffix(r.User.Name, ":user") || as == nil || as.Name != user || !slices.Contains(as.Groups, "extra") {
			t.Errorf("%s by %s as %v", r.Verb, r.User.Name, as)
		}
	}
	if len(requests) < 2 {
		t.Errorf("%d requests", len(requests))
	}
}

// asking is a generator and hooks that ask the target's client who it is and what it sees.
type asking struct {
	namespace string // of the remote cluster

	mu   sync.Mutex
	said map[string]string
}

// ask notes who the client is, and fails unless it sees the remote cluster.
func (a *asking) ask(ctx context.Context, from string) error {
	c, err := component.ClientFromContext(ctx)
	if err != nil {
		return err
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return err
	}
	a.mu.Lock()
	a.said[from] = review.Status.UserInfo.Username
	a.mu.Unlock()
	return c.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: "only-there"}, &corev1.ConfigMap{})
}

// Generate implements component.Generator.
func (a *asking) Generate(ctx context.Context, _, _ string, parameters component.Unstructurable) ([]client.Object, error) {
	spec, ok := parameters.(*placedSpec)
	if !ok {
		return nil, fmt.Errorf("the parameters are a %T", parameters)
	}
	if err := a.ask(ctx, "generator"); err != nil {
		return nil, err
	}
	return (&bundle.Bundle{Spec: spec.Spec}).Render()
}

func (a *asking) hook(from string) component.HookFunc[*placed] {
	return func(ctx context.Context, _ client.Client, _ *placed) error { return a.ask(ctx, from) }
}

func targetClient(t *testing.T, s *site) {
	t.Helper()
	a := &asking{namespace: testenv.Namespace(t, s.cfg), said: map[string]string{}}
	b := newPlacedBench(t, testenv.Start(t), func(b *placedBench) {
		b.setup = func(mgr ctrl.Manager) error {
			return component.NewReconciler[*placed](b.operator, a, component.ReconcilerOptions{}).
				WithPreReconcileHook(a.hook("pre-reconcile")).WithPostReconcileHook(a.hook("post-reconcile")).
				WithPreDeleteHook(a.hook("pre-delete")).WithPostDeleteHook(a.hook("post-delete")).SetupWithManager(mgr)
		}
	})
	name := b.namespace + "-user"
	grant(t, s.admin, userSubject(name))
	only := configMap("only-there", "1")
	only.Namespace = a.namespace
	if err := s.admin.Create(t.Context(), only); err != nil {
		t.Fatal(err)
	}
	b.secret("there", kubeconfig(t, testenv.User(t, s.cfg, impersonator())))
	b.component("a", a.namespace, func(spec *placedSpec) {
		from("there")(spec)
		as(name)(spec)
	})
	b.ready("a")
	b.delete("a")
	b.gone("a")
	want := map[string]string{"generator": name, "pre-reconcile": name, "post-reconcile": name, "pre-delete": name, "post-delete": name}
	if diff := cmp.Diff(want, a.said); diff != "" {
		t.Errorf("who the clients are (-want +got):\n%s", diff)
	}
	if c, err := component.ClientFromContext(t.Context()); c != nil || err == nil {
		t.Errorf("outside a pass there is a client %v, and the error is %v", c, err)
	}
}

// hazardous are kubeconfigs that reach into the operator's process or trust whoever answers, and what is
// said of them. Each works if it is allowed.
func hazardous(t *testing.T, user *rest.Config) map[string]func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {
	t.Helper()
	file := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name+markBytes)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := file("token", user.BearerToken)
	credential := file("credential", `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"`+user.BearerToken+`"}}`)
	authority := file("authority", string(user.CAData))
	return map[string]func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo){
		"exec": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Token, u.Exec = "", &clientcmdapi.ExecConfig{
				Command: "cat", Args: []string{credential}, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
			}
		},
		"tokenfile": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token, u.TokenFile = "", token },
		"insecure-skip-tls-verify": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData, c.InsecureSkipTLSVerify = nil, true
		},
		"certificate-authority": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData, c.CertificateAuthority = nil, authority
		},
	}
}

// impossible are kubeconfigs that do not work in any case, and that are refused before that is noticed.
func impossible() map[string]func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {
	return map[string]func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo){
		"auth-provider": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: markBytes, Config: map[string]string{"token": markBytes}}
		},
		"client-certificate": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientCertificate = "/" + markBytes },
		"client-key":         func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientKey = "/" + markBytes },
		"proxy-url": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.ProxyURL = "file://" + markBytes + "/" + markBytes
		},
	}
}

// markBytes is part of kubeconfigs and must not be seen anywhere.
const markBytes = "s3cr3tbytes"

// with returns the kubeconfig of a user with a change.
func with(t *testing.T, user *rest.Config, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	t.Helper()
	c, err := clientcmd.Load(kubeconfig(t, user))
	if err != nil {
		t.Fatal(err)
	}
	context := c.Contexts[c.CurrentContext]
	change(c.Clusters[context.Cluster], c.AuthInfos[context.AuthInfo])
	data, err := clientcmd.Write(*c)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func refusedKubeconfigs(t *testing.T, s *site) {
	t.Helper()
	user := testenv.User(t, s.cfg, everything())
	there := testenv.Namespace(t, s.cfg)
	strict := newPlacedBench(t, testenv.Start(t))
	lax := newPlacedBench(t, testenv.Start(t), func(b *placedBench) {
		b.options.Kubeconfigs = component.KubeconfigOptions{AllowExec: true, AllowFiles: true, AllowInsecure: true}
	})
	cases := hazardous(t, user)
	for name, change := range cases {
		lax.secret(name, with(t, user, change))
		lax.component(name, there, from(name))
	}
	all := maps.Clone(cases)
	maps.Copy(all, impossible())
	for name, change := range all {
		strict.secret(name, with(t, user, change))
		strict.component("strict-"+name, there, from(name))
		strict.says("strict-"+name, "the kubeconfig")
		strict.await("strict-"+name, "refused", func(p *placed) bool {
			return p.Status.State == component.StateError && strings.Contains(strings.ToLower(p.Status.Message), name)
		})
	}
	wrong := rest.CopyConfig(user)
	wrong.BearerToken = markBytes
	strict.secret("token", kubeconfig(t, wrong))
	strict.component("strict-token", there, from("token"))
	strict.says("strict-token", "the cluster "+user.Host+" does not accept the credentials")
	strict.secret("broken", []byte(markBytes))
	strict.component("strict-broken", there, from("broken"))
	strict.says("strict-broken", "cannot be decoded")
	strict.quotesNothing(markBytes)
	for name := range cases {
		lax.ready(name)
	}
}

// quotesNothing fails the test if a status, an event or the operator's log has a text.
func (b *placedBench) quotesNothing(text string) {
	b.t.Helper()
	components, events := &placedList{}, &eventsv1.EventList{}
	for _, list := range []client.ObjectList{components, events} {
		if err := b.admin.List(b.t.Context(), list, client.InNamespace(b.namespace)); err != nil {
			b.t.Fatal(err)
		}
	}
	data, err := json.Marshal([]any{components, events})
	if err != nil {
		b.t.Fatal(err)
	}
	if at := strings.Index(string(data), text); at >= 0 {
		b.t.Errorf("a kubeconfig is quoted: %s", data[max(0, at-200):min(len(data), at+200)])
	}
	if line, found := b.logs.with(text); found {
		b.t.Errorf("a kubeconfig is logged: %s", line)
	}
	if _, found := b.logs.with("strict-token"); !found || len(components.Items) == 0 || len(events.Items) == 0 {
		b.t.Error("there is nothing to search")
	}
}

// dropSecret deletes a Secret whatever finalizers it has.
func (b *placedBench) dropSecret(name string) {
	b.t.Helper()
	s := b.secretOf(name)
	if err := b.admin.Delete(b.t.Context(), s); err != nil {
		b.t.Fatal(err)
	}
	err := b.admin.Patch(b.t.Context(), s, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
}

func kubeconfigGone(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, testenv.Start(t))
	there := testenv.Namespace(t, s.cfg)
	config := kubeconfig(t, testenv.User(t, s.cfg, everything()))
	b.secret("there", config)
	b.component("a", there, from("there"))
	b.ready("a")
	b.dropSecret("there")
	b.delete("a")
	b.says("a", "the kubeconfig for the cluster of the dependents is missing; waiting for Secret "+b.namespace+"/there: it does not exist")
	if !has(t, s.admin, there, "a") {
		t.Error("the dependent was deleted with a kubeconfig that is gone")
	}
	b.secret("there", config)
	b.gone("a")
	if has(t, s.admin, there, "a") {
		t.Error("the dependent is left")
	}
}

func kubeconfigKept(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, testenv.Start(t), func(b *placedBench) { b.options.Kubeconfigs.KeepForDeletion = true })
	there := testenv.Namespace(t, s.cfg)
	b.secret("there", kubeconfig(t, testenv.User(t, s.cfg, everything())))
	b.component("a", there, from("there"))
	b.ready("a")
	b.dropSecret("there")
	b.delete("a")
	b.gone("a")
	if has(t, s.admin, there, "a") {
		t.Error("the dependent is left")
	}
}

func discovery(t *testing.T, s *site) {
	t.Helper()
	const group = "broken.tests.trimtab.dev"
	broken := object("apiregistration.k8s.io/v1", "APIService", "v1."+group, map[string]any{"spec": map[string]any{
		"group": group, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
		"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "default", "name": "missing"},
	}})
	if err := s.admin.Create(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, s.admin, broken, "unavailable", func(u *unstructured.Unstructured) bool {
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		return len(conditions) > 0
	})
	b := newPlacedBench(t, s.cfg)
	uses, err := json.Marshal(object(group+"/v1", "Thing", "x", nil))
	if err != nil {
		t.Fatal(err)
	}
	b.component("affected", b.namespace, func(s *placedSpec) { s.Objects = append(s.Objects, runtime.RawExtension{Raw: uses}) })
	b.component("a", b.namespace, func(*placedSpec) {})
	b.says("affected", "ask which kinds are served: failed to get API group resources: unable to retrieve the complete list of server APIs: "+group+"/v1")
	b.ready("a")
	b.delete("affected")
	b.gone("affected")
	b.requests.Reset()
	for _, token := range []string{"1", "2", "3"} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+api.AnnotationReconcile+`":"`+token+`"}}}`))
		if err := b.admin.Patch(t.Context(), &placed{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}}, patch); err != nil {
			t.Fatal(err)
		}
		b.await("a", "a pass", func(p *placed) bool { return p.Status.HandledReconcile == token })
	}
	for _, r := range b.requests.All() {
		if r.Resource == "" {
			t.Errorf("a request in steady state: %v", r)
		}
	}
}
