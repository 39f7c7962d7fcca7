package apiserver

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Use is a right that a request needed. Requests that need the same are one use.
type Use struct {
	Verb, Group, Resource, Subresource, Namespace, Name string
	// Path is set instead of all but the verb if the request is for no resource: "/version".
	Path string
	// Allowed tells whether a role granted it.
	Allowed bool
}

// Audit collects the rights that clients needed. It may be shared by any number of clients
// and clusters. The zero value is ready.
type Audit struct {
	mu   sync.Mutex
	uses map[Use]struct{}
}

// Uses returns what was collected, sorted.
func (a *Audit) Uses() []Use {
	a.mu.Lock()
	defer a.mu.Unlock()
	var uses []Use
	for u := range a.uses {
		uses = append(uses, u)
	}
	slices.SortFunc(uses, compareUses)
	return uses
}

func compareUses(a, b Use) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Verb, b.Verb),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (a *Audit) add(u Use) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.uses == nil {
		a.uses = map[Use]struct{}{}
	}
	a.uses[u] = struct{}{}
}

type auditKey struct{}

func withAudit(ctx context.Context, a *Audit) context.Context {
	return context.WithValue(ctx, auditKey{}, a)
}

// access decides by the roles and bindings in the request's cluster, with the real server's
// authorizer. It serves all clusters.
type access struct{ rbac *rbac.RBACAuthorizer }

// byRoles returns what decides all requests, and the further questions that registries ask
// while they serve one.
func byRoles() authorizer.Authorizer {
	return access{rbac.New(policies{}, policies{}, policies{}, policies{})}
}

var _ authorizer.Authorizer = access{}

// Authorize allows the group system:masters everything, as the real server does, and notes
// what others asked for.
func (a access) Authorize(ctx context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	if who := asked.GetUser(); who != nil && slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	decision, reason, err := authorizer.DecisionAllow, "", error(nil)
	if !basic(asked) {
		decision, reason, err = a.rbac.Authorize(ctx, asked)
	}
	if audit, ok := ctx.Value(auditKey{}).(*Audit); ok {
		if u := use(asked, decision == authorizer.DecisionAllow); u.Allowed || !optional(u.Verb) {
			audit.add(u)
		}
	}
	return decision, reason, err
}

// optional tells whether a verb is asked for although the request may well succeed without:
// who grants only what he has needs neither.
func optional(verb string) bool { return verb == "escalate" || verb == "bind" }

func use(asked authorizer.Attributes, allowed bool) Use {
	if !asked.IsResourceRequest() {
		return Use{Verb: asked.GetVerb(), Path: asked.GetPath(), Allowed: allowed}
	}
	return Use{
		Verb: asked.GetVerb(), Group: asked.GetAPIGroup(), Resource: asked.GetResource(),
		Subresource: asked.GetSubresource(), Namespace: asked.GetNamespace(), Name: asked.GetName(), Allowed: allowed,
	}
}

func (a access) ConditionsAwareAuthorize(ctx context.Context, asked authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, asked))
}

func (a access) EvaluateConditions(ctx context.Context, d authorizer.ConditionsAwareDecision, data authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return a.rbac.EvaluateConditions(ctx, d, data)
}

// guarded puts the filters in front of a handler that decide who somebody is and what he may.
func guarded(next http.Handler, by authorizer.Authorizer) http.Handler {
	allowed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := filters.GetAuthorizerAttributes(r.Context())
		if err != nil {
			responsewriters.InternalError(w, r, err)
			return
		}
		decision, reason, err := by.Authorize(r.Context(), asked)
		switch {
		case decision == authorizer.DecisionAllow:
			next.ServeHTTP(w, r)
		case err != nil:
			responsewriters.InternalError(w, r, err)
		default:
			responsewriters.Forbidden(asked, w, r, reason, legacyscheme.Codecs)
		}
	})
	return impersonation.WithImpersonation(allowed, by, legacyscheme.Codecs)
}

// policy is all that is said about access in one cluster.
type policy struct {
	roles           map[string]*rbacv1.Role // by namespace/name
	clusterRoles    map[string]*rbacv1.ClusterRole
	bindings        map[string][]*rbacv1.RoleBinding // by namespace
	clusterBindings []*rbacv1.ClusterRoleBinding
}

//arch:state it names a computation; its results are kept in each cluster
var policyOf = store.NewMemo(newPolicy, "/roles/", "/rolebindings/", "/clusterroles/", "/clusterrolebindings/")

func newPolicy(stored []store.Stored) *policy {
	p := &policy{
		roles: map[string]*rbacv1.Role{}, clusterRoles: map[string]*rbacv1.ClusterRole{},
		bindings: map[string][]*rbacv1.RoleBinding{},
	}
	for _, s := range stored {
		switch o := decodeStored(s).(type) {
		case *rbacv1.Role:
			p.roles[o.Namespace+"/"+o.Name] = o
		case *rbacv1.ClusterRole:
			p.clusterRoles[o.Name] = o
		case *rbacv1.RoleBinding:
			p.bindings[o.Namespace] = append(p.bindings[o.Namespace], o)
		case *rbacv1.ClusterRoleBinding:
			p.clusterBindings = append(p.clusterBindings, o)
		}
	}
	return p
}

// decodeStored returns a stored built-in object in its version of storage. What is stored
// was written by a registry, so it can be read.
func decodeStored(s store.Stored) runtime.Object {
	obj, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(s.Data, nil, nil)
	if err != nil {
		panic("kubesim: " + s.Key + " cannot be read: " + err.Error())
	}
	return obj
}

// policies shows the real authorizer the policy of the request's cluster.
type policies struct{}

func (policies) GetRole(ctx context.Context, namespace, name string) (*rbacv1.Role, error) {
	if r, ok := policyOf.Of(store.From(ctx)).roles[namespace+"/"+name]; ok {
		return r, nil
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("role"), name)
}

func (policies) GetClusterRole(ctx context.Context, name string) (*rbacv1.ClusterRole, error) {
	if r, ok := policyOf.Of(store.From(ctx)).clusterRoles[name]; ok {
		return r, nil
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("clusterrole"), name)
}

func (policies) ListRoleBindings(ctx context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	return policyOf.Of(store.From(ctx)).bindings[namespace], nil
}

func (policies) ListClusterRoleBindings(ctx context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	return policyOf.Of(store.From(ctx)).clusterBindings, nil
}

// String describes a use as kubectl would: "patch streams.example.com/status".
func (u Use) String() string {
	if u.Path != "" {
		return u.Verb + " " + u.Path
	}
	return u.Verb + " " + resourceName(u.Group, strings.TrimSuffix(u.Resource+"/"+u.Subresource, "/"))
}

// resourceName joins a group and a resource that may have a subresource:
// "streams.example.com/status".
func resourceName(group, resource string) string {
	if group == "" {
		return resource
	}
	name, sub, found := strings.Cut(resource, "/")
	if !found {
		return name + "." + group
	}
	return name + "." + group + "/" + sub
}
