package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Operator is an operator as its lease shows it.
type Operator struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Holder is the process that leads; empty if the lease was released.
	Holder string `json:"holder,omitempty"`
	// Leads: the lease has not run out. Seen is how long ago it was renewed.
	Leads   bool          `json:"leads"`
	Seen    time.Duration `json:"-"`
	Renewed metav1.Time   `json:"renewed"`
	// Kinds are those whose status it may write. Only [Cluster.Operators] says them.
	Kinds []string `json:"kinds,omitempty"`

	acquired metav1.Time
}

// String says which operator it is, and whether it runs.
func (o Operator) String() string {
	name := o.Namespace + "/" + o.Name
	switch {
	case o.Leads:
		return fmt.Sprintf("operator %s leads; it was seen %s ago", name, o.Seen)
	case o.Holder == "":
		return fmt.Sprintf("operator %s does not run: its lease has been released, and nobody has taken it", name)
	}
	return fmt.Sprintf("operator %s does not run: its lease was renewed %s ago", name, o.Seen)
}

// away: the lease of the operator that looks after the object has run out. Without such a lease, nothing is concluded.
func (a *asking) away(ctx context.Context, o Object) *Cause {
	if o.live == nil {
		return nil
	}
	op, found := a.operatorOf(ctx, o.Ref)
	if !found {
		return nil
	}
	if op.Leads {
		a.clear(o, op.String())
		return nil
	}
	cause := &Cause{
		Code: OperatorAway, Text: fmt.Sprintf("operator %s/%s does not run", op.Namespace, op.Name), Evidence: []string{fmt.Sprintf("its lease was renewed %s ago", op.Seen)},
		Remedy: a.Command("get", Ref{"apps/v1", "Deployment", op.Namespace, op.Name}),
	}
	if op.Holder == "" {
		cause.Evidence = []string{"its lease has been released, and nobody has taken it"}
	}
	return cause
}

// operatorOf returns the operator that looks after the objects of a kind. It is recognized by its role: one of the name of the
// lease that allows to write the status of the kind, as trimtab's manifests have it.
func (c *Cluster) operatorOf(ctx context.Context, of Ref) (Operator, bool) {
	all := c.operatorsOf(ctx, of)
	if len(all) == 0 {
		return Operator{}, false
	}
	return all[0], true
}

// operatorsOf returns all that may be meant by operatorOf.
func (c *Cluster) operatorsOf(ctx context.Context, of Ref) (found []Operator) {
	if !ofOperator(of.gvk().Group) {
		return nil
	}
	mapping, err := c.mapper.RESTMapping(of.gvk().GroupKind(), of.gvk().Version)
	if err != nil {
		return nil
	}
	all := c.running(ctx)
	roles := map[string]bool{}
	for _, role := range all.roles {
		if allows(&role, of.gvk().Group, mapping.Resource.Resource+"/status") {
			roles[role.GetName()] = true
		}
	}
	for _, lease := range all.leases {
		if roles[lease.GetName()] {
			found = append(found, c.operatorBy(&lease))
		}
	}
	return found
}

// operatorBy returns the operator that has a lease.
func (c *Cluster) operatorBy(lease *unstructured.Unstructured) Operator {
	op := Operator{Namespace: lease.GetNamespace(), Name: lease.GetName()}
	op.Holder, _, _ = unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	seconds, _, _ := unstructured.NestedInt64(lease.Object, "spec", "leaseDurationSeconds")
	renewed, err := time.Parse(time.RFC3339Nano, text)
	op.Seen, op.Renewed = c.now().Sub(renewed).Truncate(time.Second), metav1.NewTime(renewed)
	op.Leads = err == nil && op.Holder != "" && op.Seen <= time.Duration(seconds)*time.Second
	text, _, _ = unstructured.NestedString(lease.Object, "spec", "acquireTime")
	if acquired, err := time.Parse(time.RFC3339Nano, text); err == nil {
		op.acquired = metav1.NewTime(acquired)
	}
	return op
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
