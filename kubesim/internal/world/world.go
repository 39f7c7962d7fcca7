// Package world brings what there is at one moment into a form in which two runs can be
// compared: names that the server chose, times and book-keeping are taken out.
package world

import (
	"github.com/trimtab-dev/trimtab/kubesim/internal/history"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	// Without it observedGeneration is "current" or "N behind" and generations are left out: how
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

// Of returns the world that the given objects and things are. Leases and events are not part of it.
func Of(objects []Object, things []history.Thing, o Options) history.World { return history.World{} }

// Equal tells whether two worlds are the same.
func Equal(a, b history.World) bool { return false }

// Diff shows what differs, as lines of YAML: "-" what only a has, "+" what only b has. It is
// empty if nothing does.
func Diff(a, b history.World) string { return "" }

// Mask lists the fields in which two undisturbed runs differ: what an operator takes from
// random numbers. Objects that only one of them has are no fields.
func Mask(a, b history.World) []Field { return nil }
