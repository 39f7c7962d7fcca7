package apiserver

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/trimtab-dev/trimtab/kubesim/internal/history"
)

// Access holds the roles against what was asked for: what no role allows, and what a role
// grants but nothing needed. Each rule is taken apart into single grants; a wildcard counts
// as one and is used if anything it covers was.
func (r *Roles) Access(uses []Use) *history.Access {
	denied, unused := map[string]bool{}, map[string]bool{}
	for _, u := range uses {
		if !u.Allowed {
			denied[u.String()] = true
		}
	}
	for g, justified := range r.grants() {
		needed := slices.ContainsFunc(uses, func(u Use) bool { return u.Allowed && g.meets(u) })
		if !needed && !justified {
			unused[g.String()] = true
		}
	}
	return &history.Access{Denied: slices.Sorted(maps.Keys(denied)), Unused: slices.Sorted(maps.Keys(unused))}
}

// grants yields what the roles grant and whether that is justified without a use.
func (r *Roles) grants() iter.Seq2[grant, bool] {
	return func(yield func(grant, bool) bool) {
		account, _ := r.account()
		for _, role := range r.namespaced {
			namespace := cmp.Or(role.Namespace, account)
			if !visit(role.Rules, namespace, role.Annotations[Justified], yield) {
				return
			}
		}
		for _, role := range r.cluster {
			if !visit(role.Rules, "", role.Annotations[Justified], yield) {
				return
			}
		}
	}
}

// visit yields the grants of one role's rules.
func visit(rules []rbacv1.PolicyRule, namespace, justified string, yield func(grant, bool) bool) bool {
	for _, rule := range rules {
		for _, g := range expand(rule) {
			g.namespace = namespace
			if !yield(g, isJustified(g, justified)) {
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

// isJustified tells whether an annotation lists a grant: "get secrets", "* secrets" or with
// group and subresource "update streams.example.com/status".
func isJustified(g grant, annotation string) bool {
	for item := range strings.SplitSeq(annotation, ",") {
		verb, what, _ := strings.Cut(strings.TrimSpace(item), " ")
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
