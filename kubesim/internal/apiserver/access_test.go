package apiserver

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// operatorRoles is a folder as scaffolds make them, with a binding to somebody else.
var operatorRoles = fstest.MapFS{
	"role.yaml": {Data: []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: manager
  annotations: {kubesim.trimtab.dev/justified: "get nodes, * events.events.k8s.io"}
rules:
- {apiGroups: [""], resources: [secrets, configmaps], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [nodes], verbs: [get]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}
- {apiGroups: [apps], resources: [deployments/status], verbs: ["*"]}
- {apiGroups: [""], resources: [serviceaccounts], resourceNames: [web], verbs: [get, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leader}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get]}
`)},
	"people/viewer.yml": {Data: []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: viewer}
rules:
- {apiGroups: [""], resources: [pods], verbs: [list]}
`)},
	"binding.yaml": {Data: []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager}
subjects: [{kind: ServiceAccount, name: other, namespace: elsewhere}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: controller, namespace: system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: controller}
`)},
	"kustomization.txt": {Data: []byte("not read")},
}

// guardedCluster is a populated cluster with clients for it.
type guardedCluster struct {
	t      *testing.T
	server *Server
	db     *store.DB
}

func newGuardedCluster(t *testing.T) guardedCluster {
	t.Helper()
	server, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	db := store.New()
	if err := Populate(db); err != nil {
		t.Fatal(err)
	}
	return guardedCluster{t, server, db}
}

func (w guardedCluster) as(who user.Info, audit *Audit, impersonate rest.ImpersonationConfig) kubernetes.Interface {
	w.t.Helper()
	transport := &Transport{Server: w.server, Client: Client{DB: w.db, User: who, Audit: audit}}
	c, err := kubernetes.NewForConfig(&rest.Config{Host: "http://kubesim", Transport: transport, QPS: -1, Impersonate: impersonate})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w guardedCluster) admin() kubernetes.Interface {
	return w.as(nil, nil, rest.ImpersonationConfig{})
}

func installed(t *testing.T, w guardedCluster) (*Roles, user.Info) {
	t.Helper()
	roles, err := ReadRoles(operatorRoles)
	if err != nil {
		t.Fatal(err)
	}
	who, err := roles.Install(w.db)
	if err != nil {
		t.Fatal(err)
	}
	return roles, who
}

func TestRolesDecide(t *testing.T) {
	w := newGuardedCluster(t)
	roles, who := installed(t, w)
	if want := "system:serviceaccount:system:controller"; who.GetName() != want {
		t.Errorf("runs as %q, want %q", who.GetName(), want)
	}
	audit := &Audit{}
	c := w.as(who, audit, rest.ImpersonationConfig{})
	get, list := metav1.GetOptions{}, metav1.ListOptions{}

	_, err := c.CoreV1().Secrets("default").Get(t.Context(), "a", get)
	wantMessage(t, err, `secrets "a" not found`)
	_, err = c.CoreV1().Secrets("").List(t.Context(), list)
	wantMessage(t, err, "")
	err = c.CoreV1().Secrets("default").Delete(t.Context(), "a", metav1.DeleteOptions{})
	wantMessage(t, err, `secrets "a" is forbidden: User "system:serviceaccount:system:controller" cannot delete resource "secrets" in API group "" in the namespace "default"`)
	_, err = c.AppsV1().Deployments("default").Patch(t.Context(), "d", types.MergePatchType, []byte("{}"), metav1.PatchOptions{}, "scale")
	wantMessage(t, err, `deployments.apps "d" is forbidden: User "system:serviceaccount:system:controller" cannot patch resource "deployments/scale" in API group "apps" in the namespace "default"`)
	_, err = c.CoreV1().Nodes().List(t.Context(), list)
	wantMessage(t, err, `nodes is forbidden: User "system:serviceaccount:system:controller" cannot list resource "nodes" in API group "" at the cluster scope`)
	_, err = c.CoreV1().ServiceAccounts("default").Get(t.Context(), "web", get)
	wantMessage(t, err, `serviceaccounts "web" not found`)
	_, err = c.CoreV1().ServiceAccounts("default").Get(t.Context(), "db", get)
	wantMessage(t, err, `serviceaccounts "db" is forbidden: User "system:serviceaccount:system:controller" cannot get resource "serviceaccounts" in API group "" in the namespace "default"`)
	_, err = c.CoordinationV1().Leases("system").Get(t.Context(), "l", get)
	wantMessage(t, err, `leases.coordination.k8s.io "l" not found`)
	_, err = c.CoordinationV1().Leases("default").Get(t.Context(), "l", get)
	wantMessage(t, err, `leases.coordination.k8s.io "l" is forbidden: User "system:serviceaccount:system:controller" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "default"`)

	want := &Access{
		Denied: []string{
			"delete secrets", "get leases.coordination.k8s.io", "get serviceaccounts", "list nodes", "patch deployments.apps/scale",
		},
		Unused: []string{
			"* deployments.apps/status", "create leases.coordination.k8s.io in system", `delete serviceaccounts "web"`,
			"get configmaps", "list configmaps", "list pods", "watch configmaps", "watch secrets",
		},
	}
	if d := cmp.Diff(want, roles.Access(audit.Uses())); d != "" {
		t.Errorf("access (-want +got):\n%s", d)
	}
	want.Unused = []string{
		"* deployments.apps/status", "create leases.coordination.k8s.io in system", `delete serviceaccounts "web"`,
		"get configmaps", "list configmaps", "watch configmaps", "watch secrets",
	}
	if d := cmp.Diff(want, roles.OnlyBound().Access(audit.Uses())); d != "" {
		t.Errorf("access by what the folder binds (-want +got):\n%s", d)
	}
}

// TestOpenToAll proves that an operator may do without a role what everybody may who has a name, and no more.
func TestOpenToAll(t *testing.T) {
	w := newGuardedCluster(t)
	roles, who := installed(t, w)
	audit := &Audit{}
	c := w.as(who, audit, rest.ImpersonationConfig{})
	for _, path := range []string{"/api", "/apis", "/apis/apps/v1", "/openapi/v3", "/version", "/healthz", "/livez", "/readyz"} {
		if err := c.CoreV1().RESTClient().Get().AbsPath(path).Do(t.Context()).Error(); err != nil {
			t.Errorf("GET %s: %v", path, err)
		}
	}
	_, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/api", Verb: "get"}},
	}, metav1.CreateOptions{})
	wantMessage(t, err, "")
	_, err = c.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"},
	}, metav1.CreateOptions{})
	wantMessage(t, err, "")
	if denied := roles.Access(audit.Uses()).Denied; len(denied) > 0 {
		t.Errorf("denied is %v, want nothing", denied)
	}
	for _, path := range []string{"/metrics", "/healthz/etcd"} {
		if err := c.CoreV1().RESTClient().Get().AbsPath(path).Do(t.Context()).Error(); !apierrors.IsForbidden(err) {
			t.Errorf("GET %s: %v, want forbidden", path, err)
		}
	}
}

// An apply that creates needs the verb create too, as in the real server.
func TestApplyThatCreatesNeedsCreate(t *testing.T) {
	w := newGuardedCluster(t)
	roles, err := ReadRoles(fstest.MapFS{"r.json": {Data: []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",
		"metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["patch"]}]}`)}})
	if err != nil {
		t.Fatal(err)
	}
	who, err := roles.Install(w.db)
	if err != nil {
		t.Fatal(err)
	}
	audit := &Audit{}
	_, err = w.as(who, audit, rest.ImpersonationConfig{}).CoreV1().ConfigMaps("default").Patch(t.Context(), "a", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`), metav1.PatchOptions{FieldManager: "me"})
	wantMessage(t, err, `configmaps "a" is forbidden: User "system:serviceaccount:operator-system:operator" cannot create resource "configmaps" in API group "" in the namespace "default"`)
	if d := cmp.Diff([]string{"create configmaps"}, roles.Access(audit.Uses()).Denied); d != "" {
		t.Errorf("denied (-want +got):\n%s", d)
	}
}

func TestRolesChangeAtOnceAndPerWorld(t *testing.T) {
	w := newGuardedCluster(t)
	_, who := installed(t, w)
	other := guardedCluster{t, w.server, w.db.Snapshot().Open()}
	if err := w.admin().RbacV1().ClusterRoleBindings().Delete(t.Context(), "manager", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := w.as(who, nil, rest.ImpersonationConfig{}).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("without its binding: %v, want forbidden", err)
	}
	_, err = other.as(who, nil, rest.ImpersonationConfig{}).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	wantMessage(t, err, "")
}

func TestNobodyGrantsWhatHeHasNot(t *testing.T) {
	w := newGuardedCluster(t)
	roles, err := ReadRoles(fstest.MapFS{"r.yaml": {Data: []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
rules:
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [create]}
- {apiGroups: [""], resources: [pods], verbs: [get]}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	who, err := roles.Install(w.db)
	if err != nil {
		t.Fatal(err)
	}
	audit := &Audit{}
	c := w.as(who, audit, rest.ImpersonationConfig{})
	create := func(name, resource string) error {
		_, err := c.RbacV1().Roles("default").Create(t.Context(), &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{resource}}},
		}, metav1.CreateOptions{})
		return err
	}
	wantMessage(t, create("held", "pods"), "")
	if err := create("not-held", "secrets"); !apierrors.IsForbidden(err) {
		t.Errorf("granting what it has not: %v, want forbidden", err)
	}
	if d := cmp.Diff([]string(nil), roles.Access(audit.Uses()).Denied); d != "" {
		t.Errorf("asking for the verb escalate is no denial of its own (-want +got):\n%s", d)
	}
}

func TestImpersonation(t *testing.T) {
	w := newGuardedCluster(t)
	_, who := installed(t, w)
	asOperator := rest.ImpersonationConfig{UserName: who.GetName()}
	list := metav1.ListOptions{}

	_, err := w.as(nil, nil, asOperator).CoreV1().Secrets("").List(t.Context(), list)
	wantMessage(t, err, "")
	_, err = w.as(nil, nil, asOperator).CoreV1().Nodes().List(t.Context(), list)
	if !apierrors.IsForbidden(err) {
		t.Errorf("an administrator who acts as the operator: %v, want forbidden", err)
	}
	_, err = w.as(who, nil, rest.ImpersonationConfig{UserName: "root", Groups: []string{user.SystemPrivilegedGroup}}).CoreV1().Nodes().List(t.Context(), list)
	wantMessage(t, err, `users "root" is forbidden: User "system:serviceaccount:system:controller" cannot impersonate resource "users" in API group "" at the cluster scope`)
}

func TestNamespacesGuardTheirContent(t *testing.T) {
	w := newGuardedCluster(t)
	c := w.admin()
	create := func(namespace string) error {
		_, err := c.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		return err
	}
	wantMessage(t, create("default"), "")
	wantMessage(t, create("missing"), `namespaces "missing" not found`)
	_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
	wantMessage(t, err, "")
	wantMessage(t, create("n"), "")
	wantMessage(t, c.CoreV1().Namespaces().Delete(t.Context(), "n", metav1.DeleteOptions{}), "")
	wantMessage(t, c.CoreV1().Namespaces().Delete(t.Context(), "kube-system", metav1.DeleteOptions{}), `namespaces "kube-system" is forbidden: this namespace may not be deleted`)

	_, err = c.CoreV1().ConfigMaps("n").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, metav1.CreateOptions{})
	wantMessage(t, err, `configmaps "b" is forbidden: unable to create new content in namespace n because it is being terminated`)
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("%v has no cause %s", err, corev1.NamespaceTerminatingCause)
	}
	_, err = c.CoreV1().ConfigMaps("n").Update(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"a": "b"}}, metav1.UpdateOptions{})
	wantMessage(t, err, "")
}

func wantMessage(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("answer (-want +got):\n%s", d)
	}
}
