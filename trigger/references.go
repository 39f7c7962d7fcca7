package trigger

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Source is something that wakes the loop of kind T. The set of kinds of sources is
// closed; each is made by a function of this package.
type Source[T client.Object] interface {
	source(T)
}

// Reference wakes an object when another object that it names changes.
type Reference[T client.Object] struct {
	// To is an empty object of the kind referred to.
	To client.Object
	// Names are the objects of that kind that obj refers to. Pure, and cheap: it is
	// called for every change of obj. One that panics names none.
	Names func(obj T) []types.NamespacedName
	// Changed tells whether an update of the object referred to can matter. Nil means that
	// every update does, and so does one about which it panics.
	Changed func(before, after client.Object) bool
}

func (Reference[T]) source(T) {}
