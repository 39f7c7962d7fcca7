package model

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
)

// Change is an annotation to be set on an object, and what follows from that. Nothing is to be done if Annotation is empty.
type Change struct {
	Object     Ref    `json:"object"`
	Annotation string `json:"annotation,omitempty"`
	// Value is to be set, and Was is what the annotation has now.
	Value string `json:"value,omitempty"`
	Was   string `json:"was,omitempty"`
	// Effects says what follows, and why nothing is to be done if that is so.
	Effects []string `json:"effects,omitempty"`
	// Kept is what stays when the object is deleted, and Gone what does not.
	Kept []string `json:"kept,omitempty"`
	Gone []string `json:"gone,omitempty"`
	// Undo is a command that takes the change back. If that has to be before the operator acts, it says so first.
	Undo   string   `json:"undo,omitempty"`
	Unseen []string `json:"unseen,omitempty"`

	uid     types.UID
	version string // empty: the change is right for the object in any version
}

// UID is that of the object that was looked at. The change is for no other one of its name.
func (c Change) UID() types.UID { return c.uid }

// Patch returns a JSON merge patch that makes the change, if the object is still the one that was looked at, and, where that
// matters, in the same version. Otherwise the API server refuses it.
func (c Change) Patch() ([]byte, error) {
	set := any(c.Value)
	if c.Value == "" {
		set = nil
	}
	metadata := map[string]any{"uid": c.uid, "annotations": map[string]any{c.Annotation: set}}
	if c.version != "" {
		metadata["resourceVersion"] = c.version
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}

// changeOf returns a change of an annotation, which is removed if the value is empty. If the annotation has the value already,
// there is nothing to be done.
func (c *Cluster) changeOf(u *unstructured.Unstructured, annotation, value string) Change {
	change := Change{Object: refOf(u), Was: u.GetAnnotations()[annotation], uid: u.GetUID(), version: u.GetResourceVersion()}
	if change.Was == value {
		change.Effects = []string{fmt.Sprintf("annotation %s is %q already", annotation, value)}
		return change
	}
	change.Annotation, change.Value = annotation, value
	switch {
	case change.Was == "":
		change.Undo = c.Command("annotate", change.Object, annotation+"-")
	case value == "":
		change.Undo = c.Command("annotate", change.Object, annotation+"="+change.Was)
	default:
		change.Undo = c.Command("annotate", change.Object, annotation+"="+change.Was, "--overwrite")
	}
	return change
}

// permitting returns the change of an annotation that permits something which cannot be undone.
func (c *Cluster) permitting(u *unstructured.Unstructured, annotation, value string) Change {
	change := c.changeOf(u, annotation, value)
	if change.Undo != "" {
		change.Undo = "it cannot be undone once the operator has acted; before that: " + change.Undo
	}
	return change
}

// load returns an object, and an error that says so if it does not exist or cannot be read.
func (c *Cluster) load(ctx context.Context, r Ref) (*unstructured.Unstructured, error) {
	u, exists := c.get(ctx, r)
	switch {
	case u != nil:
		return u, nil
	case !exists:
		return nil, fmt.Errorf("%s %s does not exist", r.Kind, named(r))
	}
	return nil, fmt.Errorf("%s %s cannot be read: %s", r.Kind, named(r), strings.Join(c.Unseen(), "; "))
}

// nature is what objects of a kind stand for.
type nature uint8

const (
	natureNone      nature = iota // nothing else, as far as trimtab knows
	natureUnknown                 // that could not be seen
	natureExternal                // an external resource
	natureComponent               // dependents
)

// natureOf returns what an object stands for: by its status, or else by the definition of its kind.
func (c *Cluster) natureOf(ctx context.Context, u *unstructured.Unstructured) nature {
	has := func(field string) bool {
		_, found, _ := unstructured.NestedFieldNoCopy(u.Object, "status", field)
		return found
	}
	r := refOf(u)
	switch {
	case !ofOperator(r.gvk().Group):
		return natureNone
	case has("inventory"), has("compactInventory"), has("inventoryShards"):
		return natureComponent
	case has("external"), u.GetAnnotations()[api.AnnotationExternal] != "":
		return natureExternal
	case c.Declares(ctx, r, "status", "inventory"):
		return natureComponent
	case c.Declares(ctx, r, "status", "external"):
		return natureExternal
	case c.definitionUnseen(r):
		return natureUnknown
	}
	return natureNone
}

// definitionUnseen reports whether the definition of a kind could not be read.
func (c *Cluster) definitionUnseen(r Ref) bool {
	mapping, err := c.mapper.RESTMapping(r.gvk().GroupKind(), r.gvk().Version)
	if err != nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, missed := c.unseen["CustomResourceDefinition "+mapping.Resource.GroupResource().String()]
	return missed
}

// externalID returns the id of the external resource of an object: that of the status, or of the record. It is empty if
// neither has one.
func externalID(u *unstructured.Unstructured) string {
	if e := statusOf(u).External; e != nil && e.ID != "" {
		return e.ID
	}
	record := struct{ ID, Given string }{}
	if err := json.Unmarshal([]byte(u.GetAnnotations()[api.AnnotationExternal]), &record); err != nil {
		return ""
	}
	return orElse(record.Given, record.ID)
}

// items returns the inventory of a component. What cannot be read is noted.
func (c *Cluster) items(ctx context.Context, u *unstructured.Unstructured) []api.InventoryItem {
	component := statusOf(u).Component
	items, err := component.Items(func(name string) ([]byte, error) { return c.shard(ctx, u.GetNamespace(), name) })
	if err != nil {
		c.miss("the dependents of "+refOf(u).String(), err)
	}
	return items
}

// operatorName returns the name of the operator of a component, which is the prefix of its annotations: as a dependent's
// annotation owner-id has it, or else the component's finalizer. It is empty if neither is there.
func (c *Cluster) operatorName(ctx context.Context, u *unstructured.Unstructured) string {
	for tried, item := range c.items(ctx, u) {
		if tried == 5 || statusOf(u).Component.Cluster != "" { // the others would not say more, or are elsewhere
			break
		}
		if name := c.nameOn(ctx, item); name != "" {
			return name
		}
	}
	for _, finalizer := range u.GetFinalizers() {
		if name, is := strings.CutSuffix(finalizer, "/finalizer"); is {
			return name
		}
	}
	return ""
}

// nameOn returns the name of the operator that a dependent's annotation has.
func (c *Cluster) nameOn(ctx context.Context, item api.InventoryItem) string {
	if len(item.Record) > 0 { // no Kubernetes object
		return ""
	}
	live, _ := c.get(ctx, refOfItem(item))
	if live == nil {
		return ""
	}
	for key := range live.GetAnnotations() {
		if name, is := strings.CutSuffix(key, "/owner-id"); is {
			return name
		}
	}
	return ""
}

func refOfItem(item api.InventoryItem) Ref {
	return Ref{strings.TrimPrefix(item.Group+"/"+item.Version, "/"), item.Kind, item.Namespace, item.Name}
}
