package apiserver

import (
	"cmp"
	"iter"
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
	for g, isJustified := range r.grants() {
		used := func(u Use) bool { return u.Allowed && g.meets(u) }
		if !isJustified && !g.isBasic() && !slices.ContainsFunc(uses, used) {
			unused[g.String()] = true
		}
	}
	return &Access{Denied: slices.Sorted(maps.Keys(denied)), Unused: slices.Sorted(maps.Keys(unused))}
}

// grants yields what the roles grant and whether that is justified without a use.
func (r *Roles) grants() iter.Seq2[grant, bool] {
	return func(yield func(grant, bool) bool) {
		account, _ := r.account()
		for _, role := range r.namespaced {
			namespace := cmp.Or(role.Namespace, account)
			if !visit(role.Rules, namespace, r.justifiedFor(role), yield) {
				return
			}
		}
		for _, role := range r.cluster {
			if !visit(role.Rules, "", r.justifiedFor(role), yield) {
				return
			}
		}
	}
}

// justifiedFor lists what is right in a role although nothing uses it.
func (r *Roles) justifiedFor(role metav1.Object) string {
	return strings.Join(append([]string{role.GetAnnotations()[Justified]}, r.justified...), ",")
}

// visit yields the grants of one role's rules.
func visit(rules []rbacv1.PolicyRule, namespace, justified string, yield func(grant, bool) bool) bool {
	for _, rule := range rules {
		for _, g := range expand(rule) {
			g.namespace = namespace
			if !yield(g, justifies(justified, g)) {
				return false
			}
		}
	}
	return true
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
