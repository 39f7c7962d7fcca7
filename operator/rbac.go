package operator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/trimtab-dev/trimtab/loop"
)

// permission is the permission to use verbs on one resource.
type permission struct {
	group    string
	resource string   // with /subresource, if there is one
	verbs    []string // in the usual order, without duplicates
	names    []string // names of objects; none means all
	cluster  bool     // the kind is cluster-scoped, so the permission is granted for the whole cluster
}

// String returns the permission in the notation of kubectl auth can-i.
func (p permission) String() string {
	resource, subresource, _ := strings.Cut(p.resource, "/")
	if p.group != "" {
		resource += "." + p.group
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	if len(p.names) > 0 {
		resource += "/" + strings.Join(p.names, ",")
	}
	return strings.Join(p.verbs, ",") + " " + resource
}

// permissions merges needs and sorts them by group and resource. It reports all problems at once.
func permissions(needs []loop.Need, names resources) ([]permission, error) {
	type key struct {
		group, resource, names string
		cluster                bool
	}
	verbs := map[key][]string{}
	var problems []error
	for _, n := range needs {
		if n.Kind == "" || len(n.Verbs) == 0 {
			problems = append(problems, fmt.Errorf("a need must have a kind and verbs: %s %q", n.GroupVersionKind, n.Verbs))
			continue
		}
		r := n.GroupVersion().WithResource(n.Resource)
		if n.Resource == "" {
			var err error
			if r, err = names.of(n.GroupVersionKind); err != nil {
				problems = append(problems, err)
				continue
			}
		}
		k := key{group: r.Group, resource: r.Resource, names: strings.Join(n.Names, ","), cluster: n.ClusterWide}
		if n.Subresource != "" {
			k.resource += "/" + n.Subresource
		}
		verbs[k] = append(verbs[k], n.Verbs...)
	}
	byName := func(a, b key) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.resource, b.resource), strings.Compare(a.names, b.names))
	}
	var merged []permission
	for _, k := range slices.SortedFunc(maps.Keys(verbs), byName) {
		p := permission{group: k.group, resource: k.resource, verbs: sortVerbs(verbs[k]), cluster: k.cluster}
		if k.names != "" {
			p.names = strings.Split(k.names, ",")
		}
		merged = append(merged, p)
	}
	return merged, errors.Join(problems...)
}

func sortVerbs(verbs []string) []string {
	usual := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	rank := func(v string) int {
		if i := slices.Index(usual, v); i >= 0 {
			return i
		}
		return len(usual)
	}
	sorted := slices.SortedFunc(slices.Values(verbs), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	return slices.Compact(sorted)
}

// apart divides permissions into those on namespaced kinds and those on cluster-scoped kinds.
func apart(all []permission) (inNamespaces, clusterWide []permission) {
	for _, p := range all {
		if p.cluster {
			clusterWide = append(clusterWide, p)
		} else {
			inNamespaces = append(inNamespaces, p)
		}
	}
	return inNamespaces, clusterWide
}

// rules combines resources of one group with the same verbs into one rule.
func rules(permissions []permission) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, p := range permissions {
		i := slices.IndexFunc(out, func(r rbacv1.PolicyRule) bool {
			return r.APIGroups[0] == p.group && slices.Equal(r.Verbs, p.verbs) && slices.Equal(r.ResourceNames, p.names)
		})
		if i >= 0 {
			out[i].Resources = append(out[i].Resources, p.resource)
			continue
		}
		out = append(out, rbacv1.PolicyRule{APIGroups: []string{p.group}, Resources: []string{p.resource}, ResourceNames: p.names, Verbs: p.verbs})
	}
	return out
}
