package trigger

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/cached"
)

// Source wakes objects of kind T when something other than the object itself changes. Its methods
// are for package loop. The set of sources is closed, so that the interface can grow: all of them
// are types of this package.
type Source[T client.Object] interface {
	// Check returns an error if something in the source is missing or contradictory.
	Check() error
	// Watches returns an empty object of each kind that the source watches in the cluster of the
	// operator, which therefore needs permission to list and watch them.
	Watches() []client.Object
	// Needs returns the permissions that the operator needs for the source besides those to list and watch.
	Needs() []Need
	// Attach connects the source to target. It is called once, before the manager starts and after
	// Check has returned nil.
	Attach(target Target[T]) error

	source(T)
}

// Need is a permission that a source needs in the cluster of the operator.
type Need struct {
	// Of is an empty object of the kind.
	Of client.Object
	// Verbs are those of RBAC, such as get and patch.
	Verbs []string
}

// Target is the controller whose objects a source wakes.
type Target[T client.Object] struct {
	// Name is a name for the source that is unique in the manager.
	Name string
	// Controller is the controller's name.
	Controller string
	// Manager runs the controller.
	Manager manager.Manager
	// Log is the controller's logger.
	Log logr.Logger
	// Watch adds a source of controller-runtime to the controller.
	Watch func(source.Source) error
	// Event counts a change that concerns the object with that key as an event of the object, so that the
	// pass it causes is not a retry. It reports whether to queue the object. A process that is not the
	// leader queues none; when it becomes the leader, all objects are queued.
	Event func(types.NamespacedName) bool
}

// objects are those of kind T that the cache holds.
func (t Target[T]) objects() cached.Objects[T] {
	return cached.Objects[T]{Scheme: t.Manager.GetScheme(), Reader: t.Manager.GetClient()}
}
