package model

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/health"
)

// Object is an object and how it is.
type Object struct {
	Ref
	// Relation says what it is to the object above it: owned, dependent, or external. It is empty for the first one.
	Relation string `json:"relation,omitempty"`
	// UID is that of the object; empty if it was not read.
	UID types.UID `json:"uid,omitempty"`
	// Ready is True, False or Unknown. It is empty for what has nothing that could be ready, such as a ConfigMap.
	Ready metav1.ConditionStatus `json:"ready,omitempty"`
	// State is the object's state in one word, Reason that of its condition, and Message one sentence.
	State   string `json:"state,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Created is when it was created, and Since when its condition Ready has changed. Zero means that it is not known.
	Created metav1.Time `json:"created,omitzero"`
	Since   metav1.Time `json:"since,omitzero"`
	Paused  string      `json:"paused,omitempty"`
	// Deleting: it is being deleted.
	Deleting bool `json:"deleting,omitempty"`
	// Wave is the apply order of a dependent, if the dependents of its component have several. Held: it is not created before
	// those of earlier waves are ready.
	Wave *int16 `json:"wave,omitempty"`
	Held bool   `json:"held,omitempty"`
	// Needs are the dependents of the same component that a dependent is applied after, as Kind/name.
	Needs   []string `json:"needs,omitempty"`
	Objects []Object `json:"objects,omitempty"`

	live *unstructured.Unstructured // nil if it does not exist, or cannot be read
	// missing: it does not exist.
	missing bool
}

// describe reads how an object is.
func (c *Cluster) describe(ctx context.Context, u *unstructured.Unstructured) Object {
	o := Object{
		Ref: refOf(u), UID: u.GetUID(), Created: u.GetCreationTimestamp(), Paused: u.GetAnnotations()[api.AnnotationPaused],
		Deleting: !u.GetDeletionTimestamp().IsZero(), live: u,
	}
	status := statusOf(u)
	o.State, o.Message = status.State, status.Message
	ready := condition(status.Conditions, api.ConditionReady)
	if ready == nil && u.GroupVersionKind().Group == "apps" && u.GetKind() == "Deployment" {
		ready = condition(status.Conditions, "Available")
	}
	if ready != nil {
		o.Ready, o.Reason, o.Since = ready.Status, ready.Reason, ready.LastTransitionTime
		o.Message = cmp.Or(o.Message, ready.Message)
	}
	result := health.Of(u, health.Hints{}, nil)
	switch {
	case o.Ready != "" && result.Status == health.Current:
	case result.Status == health.Current && !silent(u):
		o.Ready = metav1.ConditionTrue
	case result.Status == health.Current && ofOperator(u.GroupVersionKind().Group) && c.Declares(ctx, o.Ref, "status"):
		o.Ready, o.State = metav1.ConditionUnknown, "New"
	case result.Status == health.Current:
	default:
		o.State, o.Ready = cmp.Or(o.State, string(result.Status)), cmp.Or(o.Ready, metav1.ConditionFalse)
		if o.Ready == metav1.ConditionTrue { // of an older generation, or of an object that is being deleted
			o.Ready = metav1.ConditionFalse
		}
		o.Message = cmp.Or(o.Message, result.Why)
	}
	return o
}

// Read returns an object as it is now.
func (c *Cluster) Read(ctx context.Context, r Ref) (*unstructured.Unstructured, error) {
	return c.load(ctx, r)
}

// Declares reports whether the definition of a custom resource has a field, such as status.
func (c *Cluster) Declares(ctx context.Context, of Ref, path ...string) bool {
	mapping, err := c.mapper.RESTMapping(of.gvk().GroupKind(), of.gvk().Version)
	if err != nil {
		return false
	}
	definition, version := mapping.Resource.GroupResource().String(), of.gvk().Version
	properties, known := c.schemas[definition+"/"+version]
	if !known {
		if crd, _ := c.get(ctx, Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: definition}); crd != nil {
			properties = propertiesOf(crd, version)
		}
		c.schemas[definition+"/"+version] = properties
	}
	for _, name := range path {
		field, has := properties[name].(map[string]any)
		if !has {
			return false
		}
		properties, _ = field["properties"].(map[string]any)
	}
	return true
}

// propertiesOf returns the schema of the fields of a custom resource.
func propertiesOf(crd *unstructured.Unstructured, version string) map[string]any {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range versions {
		if v, is := item.(map[string]any); is && v["name"] == version {
			properties, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema", "properties")
			return properties
		}
	}
	return nil
}

// silent reports whether an object has no status.
func silent(u *unstructured.Unstructured) bool {
	_, has := u.Object["status"]
	return !has
}

// status is what the kinds of operators have in common.
type status struct {
	ObservedGeneration int64               `json:"observedGeneration"`
	State              string              `json:"state"`
	Message            string              `json:"message"`
	Conditions         []metav1.Condition  `json:"conditions"`
	External           *externalStatus     `json:"external"`
	Component          api.ComponentStatus `json:"-"`
}

type externalStatus struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// statusOf reads as much of a status as has the usual form.
func statusOf(u *unstructured.Unstructured) status {
	var s status
	fields, _, _ := unstructured.NestedMap(u.Object, "status")
	for key, into := range map[string]any{
		"observedGeneration": &s.ObservedGeneration, "state": &s.State, "message": &s.Message, "external": &s.External,
	} {
		if data, err := json.Marshal(fields[key]); err == nil && fields[key] != nil {
			_ = json.Unmarshal(data, into) // another form is another kind's
		}
	}
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		var c metav1.Condition
		if m, is := item.(map[string]any); is && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c) == nil {
			s.Conditions = append(s.Conditions, c)
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &s.Component); err != nil {
		s.Component = api.ComponentStatus{}
	}
	return s
}

func condition(all []metav1.Condition, kind string) *metav1.Condition {
	for i := range all {
		if all[i].Type == kind {
			return &all[i]
		}
	}
	return nil
}

// below returns the objects that an object is made of: its dependents and what it owns. Those whose kind says nothing are
// described by their metadata.
func (c *Cluster) below(ctx context.Context, u *unstructured.Unstructured) []Object {
	var all []Object
	seen := map[types.UID]bool{}
	component := statusOf(u).Component
	items, err := component.Items(func(name string) ([]byte, error) { return c.shard(ctx, u.GetNamespace(), name) })
	if err != nil {
		c.miss("the dependents of "+refOf(u).String(), err)
	}
	if component.Cluster != "" {
		c.miss("the dependents of "+refOf(u).String(), errElsewhere)
		items = nil
	}
	for _, item := range items {
		r := Ref{strings.TrimPrefix(item.Group+"/"+item.Version, "/"), item.Kind, item.Namespace, item.Name}
		o := c.object(ctx, r, "dependent")
		for _, key := range item.DependsOn {
			if parts := strings.SplitN(key, "/", 4); len(parts) == 4 {
				o.Needs = append(o.Needs, parts[1]+"/"+parts[3])
			}
		}
		all = append(all, o)
		seen[types.UID(item.UID)] = true
	}
	setWaves(items, all)
	for _, owned := range c.owned(ctx, u) {
		if seen[owned.UID] {
			continue
		}
		gvk := owned.GroupVersionKind()
		all = append(all, c.object(ctx, Ref{gvk.GroupVersion().String(), gvk.Kind, owned.Namespace, owned.Name}, "owned"))
	}
	slices.SortStableFunc(all, func(a, b Object) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// setWaves says in which wave each dependent is. items are the dependents in the inventory of a component, in the same order.
func setWaves(items []api.InventoryItem, dependents []Object) {
	if !slices.ContainsFunc(items, func(i api.InventoryItem) bool { return i.ApplyOrder != items[0].ApplyOrder }) {
		return
	}
	var first *int16 // the first wave that is not ready
	for i, o := range dependents {
		if order := items[i].ApplyOrder; rank(o) < 2 && (first == nil || order < *first) {
			first = &order
		}
	}
	for i := range dependents {
		o, order := &dependents[i], items[i].ApplyOrder
		o.Wave = &order
		if o.missing && items[i].Phase == api.PhaseScheduledForApplication && order > *first {
			o.Held, o.missing = true, false
			o.Ready, o.State, o.Message = metav1.ConditionUnknown, "Held", fmt.Sprintf("waits for wave %d", *first)
		}
	}
}

// rank orders what is not ready before the rest. What is held is not the cause of anything.
func rank(o Object) int {
	switch {
	case o.Held:
		return 2
	case o.missing, o.Ready == metav1.ConditionFalse:
		return 0
	case o.Ready == metav1.ConditionUnknown:
		return 1
	}
	return 2
}

// object reads an object and describes it. One that does not exist is not ready.
func (c *Cluster) object(ctx context.Context, r Ref, relation string) Object {
	u, exists := c.get(ctx, r)
	if u == nil {
		o := Object{Ref: r, Relation: relation, missing: !exists}
		if !exists {
			o.State, o.Ready, o.Message = "Missing", metav1.ConditionFalse, "does not exist"
		}
		return o
	}
	o := c.describe(ctx, u)
	o.Relation = relation
	return o
}

// shard returns a part of an inventory that is in a ConfigMap.
func (c *Cluster) shard(ctx context.Context, namespace, name string) ([]byte, error) {
	u, exists := c.get(ctx, Ref{"v1", "ConfigMap", namespace, name})
	if u == nil {
		if exists {
			return nil, errUnreadable
		}
		return nil, errGone
	}
	m := struct {
		BinaryData map[string][]byte `json:"binaryData"`
	}{}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	return m.BinaryData[api.InventoryKey], nil
}

// lasting returns how long ago a time was, as kubectl writes ages.
func (c *Cluster) lasting(t metav1.Time) string { return duration.HumanDuration(c.now().Sub(t.Time)) }

// Missing reports whether the object does not exist.
func (o Object) Missing() bool { return o.missing }

// Reported returns the state that the object's status has; empty if it has none, or cannot be read.
func (o Object) Reported() string {
	if o.live == nil {
		return ""
	}
	return statusOf(o.live).State
}

// Conditions returns those of the object's status; none if it cannot be read.
func (o Object) Conditions() []metav1.Condition {
	if o.live == nil {
		return nil
	}
	return statusOf(o.live).Conditions
}
