package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// away: the lease of the operator that looks after the object has run out. An operator is recognized by its role: one of the
// name of the lease that allows to write the status of the kind, as trimtab's manifests have it. Without such a lease, nothing
// is concluded.
func (a *asking) away(ctx context.Context, o Object) *Cause {
	if o.live == nil || !ofOperator(o.gvk().Group) {
		return nil
	}
	mapping, err := a.mapper.RESTMapping(o.gvk().GroupKind(), o.gvk().Version)
	if err != nil {
		return nil
	}
	all := a.running(ctx)
	roles := map[string]bool{}
	for _, role := range all.roles {
		if allows(&role, o.gvk().Group, mapping.Resource.Resource+"/status") {
			roles[role.GetName()] = true
		}
	}
	for _, lease := range all.leases {
		if !roles[lease.GetName()] {
			continue
		}
		holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
		text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
		seconds, _, _ := unstructured.NestedInt64(lease.Object, "spec", "leaseDurationSeconds")
		renewed, err := time.Parse(time.RFC3339Nano, text)
		ago := a.now().Sub(renewed).Truncate(time.Second)
		name := lease.GetNamespace() + "/" + lease.GetName()
		if err == nil && holder != "" && ago <= time.Duration(seconds)*time.Second {
			a.clear(o, fmt.Sprintf("operator %s leads; it was seen %s ago", name, ago))
			return nil
		}
		cause := &Cause{
			Code: OperatorAway, Text: fmt.Sprintf("operator %s does not run", name), Evidence: []string{fmt.Sprintf("its lease was renewed %s ago", ago)},
			Remedy: fmt.Sprintf("kubectl get deployment %s -n %s", lease.GetName(), lease.GetNamespace()),
		}
		if holder == "" {
			cause.Evidence = []string{"its lease has been released, and nobody has taken it"}
		}
		return cause
	}
	return nil
}

// operators is by what operators are recognized.
type operators struct{ leases, roles []unstructured.Unstructured }

func (c *Cluster) running(ctx context.Context) operators {
	if c.operators != nil {
		return *c.operators
	}
	var err error
	c.operators = &operators{}
	if c.operators.leases, err = c.Objects(ctx, schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, ""); err != nil {
		c.miss("leases of operators", err)
		return *c.operators
	}
	for _, kind := range []string{"ClusterRole", "Role"} {
		list, err := c.Objects(ctx, schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind}, "")
		if err != nil {
			c.miss("objects of kind "+kind, err)
		}
		c.operators.roles = append(c.operators.roles, list...)
	}
	return *c.operators
}

// allows reports whether a role allows to write a resource.
func allows(role *unstructured.Unstructured, group, resource string) bool {
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	for _, item := range rules {
		rule, is := item.(map[string]any)
		if !is {
			continue
		}
		has := func(key, value string) bool {
			values, _, _ := unstructured.NestedStringSlice(rule, key)
			return slices.Contains(values, value)
		}
		if has("apiGroups", group) && has("resources", resource) && (has("verbs", "patch") || has("verbs", "update")) && !strings.HasPrefix(role.GetName(), "system:") {
			return true
		}
	}
	return false
}
