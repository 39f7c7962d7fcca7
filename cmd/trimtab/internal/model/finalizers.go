package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
)

// Guard is a finalizer: why the API server keeps an object that is being deleted.
type Guard struct {
	Name string `json:"name"`
	// Owner is who removes it, and Alive whether that one runs, as far as that is known.
	Owner string `json:"owner"`
	Alive string `json:"alive"`
	// SetBy is who has written it, according to managedFields.
	SetBy string `json:"setBy,omitempty"`
	// Protects is what it is for, and Leaks what stays without anybody who looks after it if it is removed by hand.
	Protects string   `json:"protects"`
	Leaks    []string `json:"leaks"`
}

// Stuck is an object with its finalizers.
type Stuck struct {
	Object Ref `json:"object"`
	// Deleting is since when the object is being deleted; zero if it is not.
	Deleting   metav1.Time `json:"deleting,omitzero"`
	Message    string      `json:"message,omitempty"`
	Finalizers []Guard     `json:"finalizers"`
	Unseen     []string    `json:"unseen,omitempty"`

	uid     types.UID
	version string
	names   []string
}

// Stuck explains what each finalizer of an object protects.
func (c *Cluster) Stuck(ctx context.Context, r Ref) (Stuck, error) {
	u, err := c.load(ctx, r)
	if err != nil {
		return Stuck{}, err
	}
	s := Stuck{
		Object: r, Message: flatten(statusOf(u).Message), Finalizers: []Guard{},
		uid: u.GetUID(), version: u.GetResourceVersion(), names: u.GetFinalizers(),
	}
	if at := u.GetDeletionTimestamp(); at != nil {
		s.Deleting = *at
	}
	for _, name := range s.names {
		s.Finalizers = append(s.Finalizers, c.finalizer(ctx, u, name))
	}
	if contents, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "finalizers"); r.APIVersion == "v1" && r.Kind == "Namespace" && len(contents) > 0 {
		s.Finalizers = append(s.Finalizers, Guard{
			Name: contents[0], Owner: "Kubernetes", Alive: "part of the control plane", Protects: "the objects in the namespace, which are deleted first: " + orElse(remaining(u), "it does not say which are left"),
			Leaks: []string{"everything in the namespace that cannot be reached any more; it is not removed by this command: find what is left and unstick that"},
		})
	}
	s.Unseen = c.Unseen()
	return s, nil
}

// remaining returns what a namespace says is left.
func remaining(u *unstructured.Unstructured) string {
	var texts []string
	for _, cond := range statusOf(u).Conditions {
		if cond.Status == metav1.ConditionTrue && strings.HasPrefix(cond.Type, "Namespace") {
			texts = append(texts, flatten(cond.Message))
		}
	}
	return strings.Join(texts, "; ")
}

// finalizer explains one: of Kubernetes, of the operator of the kind, or of somebody else.
func (c *Cluster) finalizer(ctx context.Context, u *unstructured.Unstructured, name string) Guard {
	f := Guard{Name: name, SetBy: setBy(u, name)}
	if protects, leaks := ofKubernetes(name); protects != "" {
		f.Owner, f.Alive, f.Protects, f.Leaks = "Kubernetes", "part of the control plane", protects, []string{leaks}
		return f
	}
	r := refOf(u)
	if c.ownFinalizer(ctx, u, name) {
		c.ofOwnOperator(ctx, u, &f)
		return f
	}
	f.Owner, f.Alive = "not known", "not known"
	if f.SetBy != "" {
		f.Owner = strings.TrimSpace(strings.Split(f.SetBy, ",")[0])
	}
	f.Protects = "not known: it is not the finalizer of an operator of " + r.Kind + " that can be seen"
	if holder, kind, is := strings.Cut(name, "/in-use-by-"); is {
		f.Owner, f.Protects = holder, fmt.Sprintf("objects of kind %s need this object for their own deletion", kind)
		f.Leaks = []string{"what those objects stand for cannot be deleted any more"}
	} else {
		f.Leaks = []string{"whatever its owner would have cleaned up; look into its documentation"}
	}
	prefix, _, _ := strings.Cut(name, "/")
	for _, lease := range c.running(ctx).leases {
		if n := lease.GetName(); n == prefix || n == f.Owner || strings.HasPrefix(name, n+".") {
			f.Alive = c.operatorBy(&lease).String()
		}
	}
	return f
}

// ownFinalizer reports whether a finalizer is that of the operator of the object's kind.
func (c *Cluster) ownFinalizer(ctx context.Context, u *unstructured.Unstructured, name string) bool {
	r := refOf(u)
	if !ofOperator(r.gvk().Group) {
		return false
	}
	if mapping, err := c.mapper.RESTMapping(r.gvk().GroupKind(), r.gvk().Version); err == nil && name == mapping.Resource.GroupResource().String()+"/finalizer" {
		return true
	}
	if why := c.finalizerReason(ctx, r, name); why != "" {
		return true
	}
	return c.natureOf(ctx, u) == natureComponent && name == c.operatorName(ctx, u)+"/finalizer"
}

// finalizerReason returns why the operator of a kind sets a finalizer, as its Deployment says.
func (c *Cluster) finalizerReason(ctx context.Context, r Ref, name string) string {
	op, found := c.operatorOf(ctx, r)
	if !found {
		return ""
	}
	d, _ := c.get(ctx, Ref{"apps/v1", "Deployment", op.Namespace, op.Name})
	if d == nil {
		return ""
	}
	for line := range strings.Lines(d.GetAnnotations()["trimtab.dev/finalizers"]) {
		if why, is := strings.CutPrefix(strings.TrimSpace(line), r.Kind+": "+name+", because "); is {
			return why
		}
	}
	return ""
}

// ofOwnOperator explains the finalizer of the operator of the object's kind.
func (c *Cluster) ofOwnOperator(ctx context.Context, u *unstructured.Unstructured, f *Guard) {
	r := refOf(u)
	f.Owner, f.Alive = "the operator of "+r.Kind, "not known: no lease of it can be seen"
	if op, found := c.operatorOf(ctx, r); found {
		f.Owner, f.Alive = "operator "+op.Namespace+"/"+op.Name, op.String()
	}
	f.Protects = orElse(c.finalizerReason(ctx, r, f.Name), "what the object stands for, which is deleted first")
	switch c.natureOf(ctx, u) {
	case natureExternal:
		f.Protects = "the external resource, which is deleted first, or kept if annotation " + api.AnnotationDeletion + " is orphan"
		f.Leaks = []string{"the external resource, if one was created; nothing shows its id"}
		if id := externalID(u); id != "" {
			f.Leaks = []string{fmt.Sprintf("external resource %q stays, with the ownership mark of this object", id)}
		}
	case natureComponent:
		f.Protects = "the dependents, which are deleted first"
		f.Leaks = c.leftOf(ctx, u)
	case natureNone, natureUnknown:
		f.Leaks = []string{"whatever its operator would have cleaned up"}
	}
}

// leftOf returns the dependents that would stay if nobody deleted them.
func (c *Cluster) leftOf(ctx context.Context, u *unstructured.Unstructured) (left []string) {
	elsewhere := statusOf(u).Component.Cluster
	for _, item := range c.items(ctx, u) {
		name := item.Kind + "/" + item.Name
		switch {
		case len(item.Record) > 0:
			left = append(left, "external resource "+name)
		case elsewhere != "":
			left = append(left, name+" in another cluster")
		default:
			if live, exists := c.get(ctx, refOfItem(item)); exists || live != nil {
				left = append(left, name)
			}
		}
	}
	if c.missed("the dependents of " + refOf(u).String()) {
		left = append(left, "dependents that are not known: its inventory cannot be read")
	}
	if left == nil {
		return []string{"nothing that its inventory lists"}
	}
	return left
}

// ofKubernetes returns what a finalizer of Kubernetes protects, and what happens without it; empty for those of others.
func ofKubernetes(name string) (protects, leaks string) {
	switch name {
	case metav1.FinalizerDeleteDependents:
		return "what the object owns, which is deleted before it (foreground deletion)", "what it owns is deleted after it"
	case metav1.FinalizerOrphanDependents:
		return "what the object owns, which is kept: owner references are removed first", "what it owns is deleted, instead of kept"
	case "kubernetes.io/pvc-protection":
		return "data that a Pod still uses", "a Pod loses its volume while it runs"
	case "kubernetes.io/pv-protection":
		return "data that a PersistentVolumeClaim is still bound to", "the claim is lost, and the disk may stay"
	case "service.kubernetes.io/load-balancer-cleanup":
		return "the load balancer of the cloud", "the load balancer stays, and costs"
	case "batch.kubernetes.io/job-tracking":
		return "the count of Pods that have ended", "the Job counts this Pod wrongly"
	case "customresourcecleanup.apiextensions.k8s.io":
		return "the objects of this kind, which are deleted first", "objects of this kind stay in the database, and come back with the definition"
	case "external-provisioner.volume.kubernetes.io/finalizer":
		return "the disk of the storage system", "the disk stays, and costs"
	}
	return "", ""
}

// setBy returns who has set a finalizer, according to managedFields.
func setBy(u *unstructured.Unstructured, name string) string {
	var all []string
	for _, entry := range u.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Finalizers map[string]any `json:"f:finalizers"`
			} `json:"f:metadata"`
		}
		if err := json.Unmarshal([]byte(entry.FieldsV1.GetRawString()), &fields); err != nil {
			continue
		}
		if _, has := fields.Metadata.Finalizers[fmt.Sprintf("v:%q", name)]; has {
			all = append(all, entry.Manager)
		}
	}
	return strings.Join(all, ", ")
}

// errNotDeleting: the finalizer of an object that is not deleted is at work.
var errNotDeleting = errors.New("is not being deleted, so nothing waits for its finalizers; delete it first")

// UID is that of the object that was looked at.
func (s Stuck) UID() types.UID { return s.uid }

// Remove returns a JSON merge patch that removes a finalizer, if the object is still the one that was looked at, in the same
// version. Otherwise the API server answers with a conflict.
func (s Stuck) Remove(name string) ([]byte, error) {
	at := slices.Index(s.names, name)
	switch {
	case s.Deleting.IsZero():
		return nil, fmt.Errorf("%s %w", s.Object, errNotDeleting)
	case at < 0 && slices.ContainsFunc(s.Finalizers, func(f Guard) bool { return f.Name == name }):
		return nil, fmt.Errorf("%s: finalizer %s is that of the namespace's contents and is not removed; find what is left in it and unstick that", s.Object, name)
	case at < 0:
		return nil, fmt.Errorf("%s has no finalizer %q; it has: %s", s.Object, name, orElse(strings.Join(s.names, ", "), "none"))
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": s.uid, "resourceVersion": s.version, "finalizers": slices.Delete(slices.Clone(s.names), at, at+1),
	}})
}

// Guard returns one of the finalizers.
func (s Stuck) Guard(name string) Guard {
	for _, f := range s.Finalizers {
		if f.Name == name {
			return f
		}
	}
	return Guard{Name: name}
}
