package projection

import (
	"fmt"
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/component/internal/rules"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// Key names an object. Its version does not matter: an object is the same one in all of them.
type Key struct {
	schema.GroupKind
	types.NamespacedName
}

// String returns "Deployment shop/web", as messages show it.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// Object is what is kept of a live object.
type Object struct {
	UID        types.UID
	Version    string // its resourceVersion
	Generation int64
	// Leaving: its deletion has begun, and Finalizers keep it.
	Leaving    bool
	Finalizers []string
	// Owner is the value of the owner annotation.
	Owner string
	// Digest identifies the manifest that was applied last.
	Digest string
	// Print identifies what we own of it, with our values unless the object is watched without them.
	Print fingerprint.Print
	// Translated: it was seen in another version than the one in which it was applied. That one may have other
	// fields, so a Print that is not the expected one tells nothing.
	Translated bool
	// Reset: managedFields were removed once, so that what the operator applied before counts as
	// another's, too.
	Reset bool
	// Released: the API server would let it be deleted although it is protected.
	Released bool
	// PlainStatus: its status is written with the object, because its kind has no status subresource.
	PlainStatus bool
	// Replicas: the operator wrote spec.replicas last, and nobody else has since.
	Replicas bool
	// Content identifies all that users wrote, of an object that the operator did not apply or not
	// only. It is zero of others.
	Content fingerprint.Hash
	Health  health.Result
	// Ended: it has done its work and ended by itself: a Job that has completed, a Pod that has succeeded.
	Ended bool
}

// entry is an object on its way from a watch.
type entry struct {
	key Key
	*kept
}

// GetObjectMeta makes an entry an object to reflectors.
func (e *entry) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Namespace: e.key.Namespace, Name: e.key.Name, UID: e.uid.get(), ResourceVersion: e.version.get(), Generation: e.generation,
	}
}

// Names are the annotations and the label by which an operator knows its objects.
type Names struct {
	// Manager is the name under which the operator applies.
	Manager string
	// OwnerLabel selects the objects of the operator, Owner is the annotation with the owner, and
	// Digest the one with the digest of the manifest, and Hints the one with hints for the health.
	OwnerLabel, Owner, Digest, Hints string
	// Release is the annotation that releases a protected object if it names its UID. Empty means that there
	// is none.
	Release string
	// Health is the annotation with the rule by which an object is judged, and Rules are those rules.
	Health string
	Rules  *rules.Rules
}

// MetadataOnly reports whether objects of a kind are watched without their contents: those that are
// healthy as soon as they exist. So no Secret of others enters the process.
func MetadataOnly(kind schema.GroupKind) bool { return health.Immediate(kind) }

// Of returns what is kept of an object with all its contents.
func (n Names) Of(u *unstructured.Unstructured) Object {
	o := n.metadata(u)
	o.Print, _ = fingerprint.Of(u.Object, n.Manager, metav1.ManagedFieldsOperationApply)
	o.Translated = n.translated(u)
	o.Content, _ = fingerprint.OfContent(u.Object, n.Manager)
	o.PlainStatus, o.Replicas = plainStatus(u), n.ownsReplicas(u)
	o.Ended = hasEnded(u)
	if MetadataOnly(u.GroupVersionKind().GroupKind()) {
		o.Health = present(o)
	} else {
		hints, _ := health.ParseHints(u.GetAnnotations()[n.Hints])
		rule := n.Rules.Of(u.GroupVersionKind().GroupKind(), u.GetAnnotations()[n.Health])
		o.Health = health.Of(u, hints, rule)
	}
	return o
}

// translated reports whether an object is in another version than the one in which it was applied.
func (n Names) translated(u *unstructured.Unstructured) bool {
	return anyEntry(u, func(entry map[string]any) bool {
		return entry["manager"] == n.Manager && entry["operation"] == string(metav1.ManagedFieldsOperationApply) && entry["apiVersion"] != u.GetAPIVersion()
	})
}

// ofMetadata returns what is kept of an object of which only the metadata is known.
func (n Names) ofMetadata(m *metav1.PartialObjectMetadata) Object {
	o := n.metadata(m)
	o.Print.Owned, _ = fingerprint.OfMetadata(m, n.Manager, metav1.ManagedFieldsOperationApply)
	o.Health = present(o)
	return o
}

func (n Names) metadata(m metav1.Object) Object {
	return Object{
		UID: m.GetUID(), Version: m.GetResourceVersion(), Generation: m.GetGeneration(),
		Leaving: m.GetDeletionTimestamp() != nil, Finalizers: slices.Clone(m.GetFinalizers()),
		Owner: m.GetAnnotations()[n.Owner], Digest: m.GetAnnotations()[n.Digest], Reset: reset(m),
		Released: n.Release != "" && m.GetAnnotations()[n.Release] == string(m.GetUID()),
	}
}

// reset reports whether an object was without managedFields when something was applied to it.
func reset(m metav1.Object) bool {
	u, ok := m.(*unstructured.Unstructured)
	if !ok {
		return slices.ContainsFunc(m.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == fingerprint.BeforeFirstApply })
	}
	return anyEntry(u, func(entry map[string]any) bool { return entry["manager"] == fingerprint.BeforeFirstApply })
}

// anyEntry reports whether something holds for an entry of managedFields.
func anyEntry(u *unstructured.Unstructured, holds func(entry map[string]any) bool) bool {
	metadata, _ := u.Object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	return slices.ContainsFunc(list, func(item any) bool {
		entry, _ := item.(map[string]any)
		return holds(entry)
	})
}

// plainStatus reports whether somebody wrote the status of an object without a subresource. Where there is
// one, the API server attributes the status to nobody else.
func plainStatus(u *unstructured.Unstructured) bool {
	return anyEntry(u, func(entry map[string]any) bool {
		fields, _ := entry["fieldsV1"].(map[string]any)
		subresource, _ := entry["subresource"].(string)
		return subresource == "" && fields["f:status"] != nil
	})
}

// EndsByItself reports whether objects of a kind do their work once and end: Jobs and Pods.
func EndsByItself(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Group: "batch", Kind: "Job"} || kind == schema.GroupKind{Kind: "Pod"}
}

// hasEnded reports whether an object has done its work and ended by itself.
func hasEnded(u *unstructured.Unstructured) bool {
	if !EndsByItself(u.GroupVersionKind().GroupKind()) {
		return false
	}
	status, _ := u.Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	return status["phase"] == "Succeeded" || slices.ContainsFunc(conditions, func(item any) bool {
		c, _ := item.(map[string]any)
		return c["type"] == "Complete" && c["status"] == "True"
	})
}

// ownsReplicas reports whether the operator owns the number of replicas of an object.
func (n Names) ownsReplicas(u *unstructured.Unstructured) bool {
	return anyEntry(u, func(entry map[string]any) bool {
		fields, _ := entry["fieldsV1"].(map[string]any)
		spec, _ := fields["f:spec"].(map[string]any)
		subresource, _ := entry["subresource"].(string)
		return subresource == "" && entry["manager"] == n.Manager && spec["f:replicas"] != nil
	})
}

// present is the health of an object that is ready as soon as it exists.
func present(o Object) health.Result {
	if o.Leaving {
		return health.Result{Status: health.Terminating, Why: "is being deleted", Path: "metadata.deletionTimestamp"}
	}
	return health.Result{Status: health.Current}
}

// transformer makes entries of what a watch of a kind brings.
func (n Names) transformer(kind schema.GroupKind) func(any) (any, error) {
	return func(obj any) (any, error) {
		switch o := obj.(type) {
		case *entry:
			return o, nil
		case *unstructured.Unstructured:
			return &entry{keyOf(kind, o), keep(n.Of(o), keyOf(kind, o))}, nil
		case *metav1.PartialObjectMetadata:
			return &entry{keyOf(kind, o), keep(n.ofMetadata(o), keyOf(kind, o))}, nil
		}
		return nil, fmt.Errorf("a component's watch got a %T; this is a bug in trimtab", obj)
	}
}

func keyOf(kind schema.GroupKind, m metav1.Object) Key {
	return Key{kind, types.NamespacedName{Namespace: unique.Make(m.GetNamespace()).Value(), Name: m.GetName()}}
}
