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
	version string
}

// Patch returns a JSON merge patch that makes the change, if the object is still the one that was looked at, in the same
// version. Otherwise the API server answers with a conflict.
func (c Change) Patch() ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": c.uid, "resourceVersion": c.version, "annotations": map[string]any{c.Annotation: c.Value},
	}})
}

// changeOf returns a change of an annotation. If the annotation has the value already, there is nothing to be done.
func changeOf(u *unstructured.Unstructured, annotation, value string) Change {
	c := Change{Object: refOf(u), Was: u.GetAnnotations()[annotation], uid: u.GetUID(), version: u.GetResourceVersion()}
	if c.Was == value {
		c.Effects = []string{fmt.Sprintf("annotation %s is %q already", annotation, value)}
		return c
	}
	c.Annotation, c.Value = annotation, value
	c.Undo = fmt.Sprintf("kubectl annotate %s %s%s %s-", strings.ToLower(c.Object.Kind), c.Object.Name, inNamespace(c.Object), annotation)
	if c.Was != "" {
		c.Undo = strings.TrimSuffix(c.Undo, "-") + "=" + quoted(c.Was) + " --overwrite"
	}
	return c
}

// permitting returns the change of an annotation that permits something which cannot be undone.
func permitting(u *unstructured.Unstructured, annotation, value string) Change {
	c := changeOf(u, annotation, value)
	if c.Undo != "" {
		c.Undo = "it cannot be undone once the operator has acted; before that: " + c.Undo
	}
	return c
}

// quoted returns a text as a word for a shell.
func quoted(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=@", r)
	}) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
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
