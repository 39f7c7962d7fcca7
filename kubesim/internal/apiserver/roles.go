package apiserver

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Justified is the annotation of a Role or ClusterRole that lists grants which are right
// although nothing uses them: "get secrets, * leases.coordination.k8s.io".
const Justified = "kubesim.trimtab.dev/justified"

// The account that roles are bound to if their folder names none.
const (
	operatorNamespace = "operator-system"
	operatorAccount   = "operator"
)

// Roles are an operator's Roles and ClusterRoles.
type Roles struct {
	namespaced  []*rbacv1.Role
	cluster     []*rbacv1.ClusterRole
	accounts    []*corev1.ServiceAccount
	namespaces  map[string]bool
	bound       map[string]bool // "Role/name" that some binding of the folder names
	hasBindings bool
	justified   []string // beside annotations
}

// Justify lists grants that are right although nothing uses them, in the form of [Justified].
func (r *Roles) Justify(grants ...string) { r.justified = append(r.justified, grants...) }

// ReadRoles reads the YAML and JSON files of a folder and its subfolders. It keeps Roles,
// ClusterRoles, their bindings, ServiceAccounts and Namespaces and skips all else.
func ReadRoles(folder fs.FS) (*Roles, error) {
	r := &Roles{namespaces: map[string]bool{}, bound: map[string]bool{}}
	err := documents(folder, func(kind metav1.TypeMeta, document []byte) error {
		if !relevant(kind) {
			return nil
		}
		obj, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err == nil {
			r.take(obj)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read roles: %w", err)
	}
	if len(r.namespaced)+len(r.cluster) == 0 {
		return nil, errors.New("read roles: the folder holds no Role or ClusterRole; generate them or leave it out to run as an administrator")
	}
	return r, nil
}

func relevant(k metav1.TypeMeta) bool {
	return k.APIVersion == rbacv1.SchemeGroupVersion.String() ||
		k.APIVersion == "v1" && (k.Kind == "ServiceAccount" || k.Kind == "Namespace")
}

func (r *Roles) take(obj runtime.Object) {
	switch o := obj.(type) {
	case *rbacv1.Role:
		r.namespaced = append(r.namespaced, o)
	case *rbacv1.ClusterRole:
		r.cluster = append(r.cluster, o)
	case *rbacv1.RoleBinding:
		r.hasBindings = true
		r.bound[o.RoleRef.Kind+"/"+o.RoleRef.Name] = true
	case *rbacv1.ClusterRoleBinding:
		r.hasBindings = true
		r.bound[o.RoleRef.Kind+"/"+o.RoleRef.Name] = true
	case *corev1.ServiceAccount:
		r.accounts = append(r.accounts, o)
	case *corev1.Namespace:
		r.namespaces[o.Name] = true
	}
}

// OnlyBound returns the roles without those that no binding of their folder names, such as
// the roles for people that scaffolds put beside the operator's. A folder without bindings
// keeps all its roles.
func (r *Roles) OnlyBound() *Roles {
	if !r.hasBindings {
		return r
	}
	kept := *r
	kept.namespaced = slices.DeleteFunc(slices.Clone(r.namespaced), func(o *rbacv1.Role) bool { return !r.bound["Role/"+o.Name] })
	kept.cluster = slices.DeleteFunc(slices.Clone(r.cluster), func(o *rbacv1.ClusterRole) bool { return !r.bound["ClusterRole/"+o.Name] })
	return &kept
}

// account is the service account that the operator runs under.
func (r *Roles) account() (namespace, name string) {
	namespace, name = operatorNamespace, operatorAccount
	if names := slices.Sorted(maps.Keys(r.namespaces)); len(names) > 0 {
		namespace = names[0]
	}
	if len(r.accounts) > 0 {
		name = r.accounts[0].Name
		namespace = cmp.Or(r.accounts[0].Namespace, namespace)
	}
	return namespace, name
}

// Install puts the roles into a cluster, binds all of them to one service account and returns
// that account's user. Call [Populate] before.
func (r *Roles) Install(db *store.DB) (user.Info, error) {
	namespace, name := r.account()
	if err := r.load(db, namespace, name); err != nil {
		return nil, fmt.Errorf("install roles: %w", err)
	}
	who := serviceaccount.UserInfo(namespace, name, store.UID("/serviceaccounts/"+namespace+"/"+name, 0))
	return &user.DefaultInfo{
		Name: who.GetName(), UID: who.GetUID(), Extra: who.GetExtra(), Groups: append(who.GetGroups(), user.AllAuthenticated),
	}, nil
}

func (r *Roles) load(db *store.DB, namespace, name string) error {
	var errs []error
	put := func(resource string, obj runtime.Object) {
		s, err := seed(resource, obj)
		if err != nil {
			errs = append(errs, err)
			return
		}
		db.Load(s.Key, s.Data)
	}
	for _, ns := range r.missing(db, namespace) {
		put("namespaces", newNamespace(ns))
	}
	put("serviceaccounts", &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	for _, role := range r.namespaced {
		role = role.DeepCopy()
		role.Namespace = cmp.Or(role.Namespace, namespace)
		put("roles", role)
		put("rolebindings", &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: role.Namespace, Name: role.Name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		})
	}
	for _, role := range r.cluster {
		put("clusterroles", role.DeepCopy())
		put("clusterrolebindings", &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		})
	}
	return errors.Join(errs...)
}

// missing returns the namespaces that the roles need and the cluster lacks, sorted.
func (r *Roles) missing(db *store.DB, account string) []string {
	needed := maps.Clone(r.namespaces)
	needed[account] = true
	for _, role := range r.namespaced {
		needed[cmp.Or(role.Namespace, account)] = true
	}
	maps.DeleteFunc(needed, func(name string, _ bool) bool { return phases.Of(db)[name] != "" })
	return slices.Sorted(maps.Keys(needed))
}

// grant is one right that a role gives. Parts may be "*".
type grant struct {
	verb, group, resource, name, path string
	namespace                         string // "" for all
}

// String is "get secrets", "update streams.example.com/status" or `get secrets "tls"`, with
// the namespace of a Role behind it.
func (g grant) String() string {
	if g.path != "" {
		return g.verb + " " + g.path
	}
	s := g.kind()
	if g.name != "" {
		s += fmt.Sprintf(" %q", g.name)
	}
	if g.namespace != "" {
		s += " in " + g.namespace
	}
	return s
}

func (g grant) kind() string { return g.verb + " " + resourceName(g.group, g.resource) }

// meets tells whether a use needs this grant or one that it is part of.
func (g grant) meets(u Use) bool {
	if g.path != "" || u.Path != "" {
		return g.path != "" && u.Path != "" && (g.verb == "*" || g.verb == u.Verb) &&
			(g.path == u.Path || strings.HasSuffix(g.path, "*") && strings.HasPrefix(u.Path, strings.TrimSuffix(g.path, "*")))
	}
	resource := u.Resource
	if u.Subresource != "" {
		resource += "/" + u.Subresource
	}
	return (g.verb == "*" || g.verb == u.Verb) && (g.group == "*" || g.group == u.Group) &&
		(g.resource == "*" || g.resource == resource || u.Subresource != "" && g.resource == "*/"+u.Subresource) &&
		(g.name == "" || g.name == u.Name) && (g.namespace == "" || g.namespace == u.Namespace)
}
