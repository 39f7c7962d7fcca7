package apiserver

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Access is how roles were used.
type Access struct {
	// Denied are requests that no role allows: "patch streams/status".
	Denied []string
	// Unused are rules that no request needed: "get secrets".
	Unused []string
}

// Access holds the roles against what was asked for: what no role allows, and what a role
// grants but nothing needed. Each rule is taken apart into single grants; a wildcard counts
// as one and is used if anything it covers was. A grant of what everybody may do is never unused.
func (r *Roles) Access(uses []Use) *Access {
	denied, unused := map[string]bool{}, map[string]bool{}
	for _, u := range uses {
		if !u.Allowed {
			denied[u.String()] = true
		}
	}
	for _, g := range r.grants() {
		used := func(u Use) bool { return u.Allowed && g.meets(u) }
		if !g.isBasic() && !slices.ContainsFunc(uses, used) {
			unused[g.String()] = true
		}
	}
	return &Access{Denied: slices.Sorted(maps.Keys(denied)), Unused: slices.Sorted(maps.Keys(unused))}
}

// grants are what the roles grant, without what is right although nothing uses it.
func (r *Roles) grants() (all []grant) {
	account, _ := r.account()
	for _, role := range r.namespaced {
		all = append(all, r.grantsOf(role, role.Rules, cmp.Or(role.Namespace, account))...)
	}
	for _, role := range r.cluster {
		all = append(all, r.grantsOf(role, role.Rules, "")...)
	}
	return all
}

// grantsOf are those of one role.
func (r *Roles) grantsOf(role metav1.Object, rules []rbacv1.PolicyRule, namespace string) (all []grant) {
	justified := strings.Join(append([]string{role.GetAnnotations()[Justified]}, r.justified...), ",")
	for _, rule := range rules {
		for _, g := range expand(rule) {
			if g.namespace = namespace; !justifies(justified, g) {
				all = append(all, g)
			}
		}
	}
	return all
}

// expand takes a rule apart.
func expand(rule rbacv1.PolicyRule) []grant {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []grant
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			all = append(all, grant{verb: verb, path: path})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					all = append(all, grant{verb: verb, group: group, resource: resource, name: name})
				}
			}
		}
	}
	return all
}

// justifies reports whether an annotation lists a grant, as "get secrets", "* secrets" or with group and subresource
// "update streams.example.com/status".
func justifies(annotation string, g grant) bool {
	for item := range strings.SplitSeq(annotation, ",") {
		item = strings.TrimSpace(item)
		verb, what, _ := strings.Cut(item, " ")
		of := resourceName(g.group, g.resource)
		if g.path != "" {
			of = g.path
		}
		if (verb == "*" || verb == g.verb) && strings.TrimSpace(what) == of {
			return true
		}
	}
	return false
}
