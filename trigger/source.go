package trigger

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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
	// ClusterWide grants the permission in the whole cluster even if the operator watches only some namespaces.
	ClusterWide bool
	// Later says that the cluster may serve the kind only after the operator has started, or never.
	Later bool
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
	// Namespaces are those whose objects are watched. Empty means all.
	Namespaces []string
	// Passes has a function called at the end of each pass that called the author's code, and when the object is found
	// to be gone, with its key. There is no other pass over the object at that time.
	Passes func(ended func(types.NamespacedName))

	// other is the cache of a source that comes and goes; nil means the manager's.
	other cache.Cache
}

// cache is where the source watches its kind.
func (t Target[T]) cache() cache.Cache {
	if t.other != nil {
		return t.other
	}
	return t.Manager.GetCache()
}

// objects are those of kind T that the cache holds.
func (t Target[T]) objects() cached.Objects[T] {
	return cached.Objects[T]{Scheme: t.Manager.GetScheme(), Reader: t.Manager.GetClient()}
}
