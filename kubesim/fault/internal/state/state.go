// Package state brings what exists at one moment, in Kubernetes and at the external API, into a form
// in which two runs can be compared: names that a server chose, times and book-keeping are left out.
package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// Object is one object of Kubernetes.
type Object struct {
	Group, Resource string
	// Object is not modified.
	Object *unstructured.Unstructured
}

// Options says what else to leave out. The zero value leaves nothing else out.
type Options struct {
	// Foreign are fields that others own: "status.lastSeen",
	// "metadata.annotations.example.com/at". A list on the way means each of its elements; "status.conditions.[Failed=False]"
	// is a condition in one state.
	Foreign []string
	// Masked are fields that are left out of one object each; see [Mask].
	Masked []history.Field
	// Random are the shapes of names that the operator chose at random.
	Random []Shape
	// Lists are those of custom resources that have no order, by resource and group: "databases.demo.dev".
	Lists map[string]*Lists
}

// Of returns the state that the given objects and resources are. Leases and events are not part of
// it. Names that a server or an external API chose become those of their owners, so that they are the same
// in each run as long as they name what lives.
func Of(objects []Object, things []history.Resource, o Options) history.State {
	n := newNames(objects)
	objects = slices.DeleteFunc(slices.Clone(objects), skipped)
	n.nameGenerated(objects, o)
	n.nameResources(objects, things)
	w := history.State{Objects: make(map[string]string, len(objects)), Resources: make([]history.Resource, 0, len(things))}
	if len(o.Masked) > 0 {
		w.Masked = map[history.Field]string{}
	}
	for _, x := range objects {
		sheet, masked := n.sheet(x, o)
		w.Objects[n.key(x)] = sheet
		maps.Copy(w.Masked, masked)
	}
	for _, t := range things {
		state := t.State
		t.Owner, t.State = n.text(t.Owner), n.text(t.State)
		if stable, ok := n.ids[t.ID]; ok {
			t.ID = stable
		} else {
			t.ID = n.text(t.ID)
		}
		if f := (history.Field{Object: externalKey(t), Path: "state"}); slices.Contains(o.Masked, f) {
			w.Masked[f], t.State = state, ""
		}
		w.Resources = append(w.Resources, t)
	}
	slices.SortFunc(w.Resources, compareResources)
	return w
}

// Sheet returns an object as the YAML that it has in a state in which nothing has a name that was chosen.
func Sheet(x Object, o Options) string { return newNames(nil).yaml(x, o) }

// skipped reports what is no part of a state.
func skipped(x Object) bool { return history.Housekeeping(x.Group, x.Resource) }

func compareResources(a, b history.Resource) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.State, b.State))
}

// Key names an object as [history.State] does: "databases.demo.dev default/shop".
func Key(group, resource, namespace, name string) string {
	if group != "" {
		resource += "." + group
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	return resource + " " + name
}

// externalKey names an external resource in a difference: "external stream orders".
func externalKey(t history.Resource) string {
	return strings.TrimSpace("external " + t.Kind + " " + t.ID)
}

// Equal reports whether two states are the same.
func Equal(a, b history.State) bool {
	return maps.Equal(a.Objects, b.Objects) && slices.Equal(a.Resources, b.Resources)
}

// externalYAML shows an external resource as an object is shown.
func externalYAML(t history.Resource) string {
	return fmt.Sprintf("owner: %s\nready: %v\nstate: %s\n", scalar(t.Owner), t.Ready, scalar(t.State))
}
