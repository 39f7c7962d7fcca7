package testenv

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// User returns the client configuration of a new service account that has the permissions in rules, in
// all namespaces, and no others. Run an operator under it, and a permission that is missing from its
// role fails the test instead of the first installation.
//
// User returns when the permissions are in effect. The account and its role are removed when the test
// ends.
func User(t testing.TB, cfg *rest.Config, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	c := Client(t, cfg)
	ns := Namespace(t, cfg)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "user"}}
	// Names of cluster-scoped objects contain that of the namespace, which is unique.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ns}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: account.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	for _, obj := range []client.Object{account, role, binding} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatalf("create a user: %v", err)
		}
	}
	deleteAtEnd(t, c, binding, role)

	token := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatalf("create a token for the user: %v", err)
	}
	user := rest.AnonymousClientConfig(cfg)
	user.BearerToken = token.Status.Token
	user.QPS = cfg.QPS
	awaitAllowed(t, user, rules)
	return user
}

// awaitAllowed waits until the server's authorizer, which watches roles, allows the user the first
// permission of each rule.
func awaitAllowed(t testing.TB, user *rest.Config, rules []rbacv1.PolicyRule) {
	t.Helper()
	c := Client(t, user)
	for _, rule := range rules {
		spec := firstOf(rule)
		poll(t, "the user's permissions to take effect", func(ctx context.Context) (bool, error) {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: spec}
			err := c.Create(ctx, review)
			return review.Status.Allowed, err
		})
	}
}

// firstOf returns the attributes of the first permission of a rule.
func firstOf(rule rbacv1.PolicyRule) authorizationv1.SelfSubjectAccessReviewSpec {
	if len(rule.NonResourceURLs) > 0 {
		return authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{
			Path: rule.NonResourceURLs[0],
			Verb: head(rule.Verbs),
		}}
	}
	resource, subresource, _ := strings.Cut(head(rule.Resources), "/")
	return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb:        head(rule.Verbs),
		Group:       head(rule.APIGroups),
		Resource:    resource,
		Subresource: subresource,
		Name:        head(rule.ResourceNames),
	}}
}

func head(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
