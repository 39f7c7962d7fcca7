// Package world brings what there is at one moment into a form in which two runs can be
// compared: names that the server chose, times and book-keeping are taken out.
package world

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/internal/history"
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
	// "metadata.annotations.example.com/at". A list on the way means each of its elements.
	Foreign []string
	// Masked are fields that are left out of one object each; see [Mask].
	Masked []Field
	// Generations keeps metadata.generation and observedGeneration as the numbers they are.
	// Without it observedGeneration is "current" or "behind by N" and generations are left out: how
	// often a spec was written on the way is not what the world came to.
	Generations bool
}

// Field is one field of one object.
type Field struct {
	// Object is its key in [history.World].Objects.
	Object string
	// Path leads to the field: "data.password". An element of a list is [N].
	Path string
}

// String returns the field as people name it.
func (f Field) String() string { return f.Object + " " + f.Path }

// Of returns the world that the given objects and things are. Leases and events are not part of
// it. Names that a server or vendor chose become those of their owners, so that they are the same
// in each run as long as they name what lives.
func Of(objects []Object, things []history.Thing, o Options) history.World {
	n := newNames(objects)
	objects = slices.DeleteFunc(slices.Clone(objects), skipped)
	n.nameGenerated(objects, o)
	n.nameThings(objects, things)
	w := history.World{Objects: make(map[string]string, len(objects)), Things: make([]history.Thing, 0, len(things))}
	for _, x := range objects {
		w.Objects[n.key(x)] = n.yaml(x, o)
	}
	for _, t := range things {
		t.Owner, t.State = n.text(t.Owner), n.text(t.State)
		if stable, ok := n.ids[t.ID]; ok {
			t.ID = stable
		} else {
			t.ID = n.text(t.ID)
		}
		if slices.ContainsFunc(o.Masked, func(f Field) bool { return f.Object == thingKey(t) && f.Path == "state" }) {
			t.State = ""
		}
		w.Things = append(w.Things, t)
	}
	slices.SortFunc(w.Things, compareThings)
	return w
}

// skipped tells of what is no part of a world.
func skipped(x Object) bool { return history.Housekeeping(x.Group, x.Resource) }

func compareThings(a, b history.Thing) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.State, b.State))
}

// Key names an object as [history.World] does: "databases.demo.dev default/shop".
func Key(group, resource, namespace, name string) string {
	if group != "" {
		resource += "." + group
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	return resource + " " + name
}

// thingKey names a thing in a difference: "outside stream orders".
func thingKey(t history.Thing) string { return strings.TrimSpace("outside " + t.Kind + " " + t.ID) }

// Equal tells whether two worlds are the same.
func Equal(a, b history.World) bool {
	return maps.Equal(a.Objects, b.Objects) && slices.Equal(a.Things, b.Things)
}

// thingYAML shows a thing as an object is shown.
func thingYAML(t history.Thing) string {
	return fmt.Sprintf("owner: %s\nready: %v\nstate: %s\n", scalar(t.Owner), t.Ready, scalar(t.State))
}
