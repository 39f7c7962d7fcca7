package children

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// Child describes one child of each object of kind T. Make one with [Named]. Its methods return a changed copy.
type Child[T client.Object] struct {
	name      string
	kind      client.Object // an empty object
	desired   func(T) client.Object
	when      func(T) bool
	protected bool
	elsewhere bool
	adoption  api.AdoptionPolicy
}

// Named describes a child. name is unique among the children of T and the value of a label on the child. desired
// returns the object as it should be; fields that it leaves out are left to others. It must depend on owner alone.
// Without a name, the object gets that of its owner; without a namespace, that of its owner. C is a type that the
// manager's scheme knows.
//
// To drop a child from an operator, keep it for one release with a [Child.When] that returns false.
func Named[T, C client.Object](name string, desired func(owner T) C) Child[T] {
	c := Child[T]{name: name}
	if t := reflect.TypeFor[C](); t.Kind() == reflect.Pointer {
		c.kind, _ = reflect.TypeAssert[client.Object](reflect.New(t.Elem()))
	}
	if desired != nil {
		c.desired = func(owner T) client.Object {
			obj := desired(owner)
			if reflect.ValueOf(obj).IsNil() {
				return nil
			}
			return obj
		}
	}
	return c
}

// When has the child exist only while exists returns true. Otherwise it is deleted, also if it is protected.
func (c Child[T]) When(exists func(owner T) bool) Child[T] {
	c.when = exists
	return c
}

// Protected is for a child that cannot be created again without loss, such as a database. It gets a finalizer, so that
// nobody can delete it while its owner needs it, and so does the owner, first. Both go when the owner is deleted, and
// the child's when it is no longer wanted.
func (c Child[T]) Protected() Child[T] {
	c.protected = true
	return c
}

// Elsewhere is for a child that garbage collection does not reach: one in another namespace than its owner, or without
// a namespace while its owner has one. It gets an annotation with the name of its owner in place of an owner reference,
// and the owner gets a finalizer, so that the child is deleted before it.
func (c Child[T]) Elsewhere() Child[T] {
	c.elsewhere = true
	return c
}

// Adopt says what happens if the object exists and is not a child of its owner. Empty means
// [api.AdoptionPolicyIfUnowned]: it becomes one if it has no other controller, belongs to no Helm release, and is not
// the child of another owner or part of a component by annotation.
func (c Child[T]) Adopt(policy api.AdoptionPolicy) Child[T] {
	c.adoption = policy
	return c
}

// check returns what is wrong with the child.
func (c Child[T]) check() error {
	var problems []error
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("child %q: "+format, append([]any{c.name}, args...)...))
	}
	if c.name == "" {
		problems = append(problems, errors.New("a child has no name; children.Named needs one, for example \"config\""))
	} else if msgs := validation.IsValidLabelValue(c.name); len(msgs) > 0 {
		wrong("its name is the value of a label: %s", msgs[0])
	}
	if c.desired == nil {
		wrong("children.Named needs a function that returns the object")
	}
	if _, untyped := c.kind.(*unstructured.Unstructured); untyped || c.kind == nil {
		wrong("its function must return a pointer to a type that the scheme knows, such as *corev1.ConfigMap")
	}
	switch c.adoption {
	case "", api.AdoptionPolicyNever, api.AdoptionPolicyIfUnowned, api.AdoptionPolicyAlways:
	default:
		wrong("adoption policy %q does not exist; use never, if-unowned or always", c.adoption)
	}
	return errors.Join(problems...)
}

// finalized reports whether the owner needs a finalizer because of the child.
func (c Child[T]) finalized(o settings) bool { return c.protected || c.unreachable(o) }

// unreachable reports whether garbage collection does not delete the child with its owner.
func (c Child[T]) unreachable(o settings) bool { return c.elsewhere || o.manual }
