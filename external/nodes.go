package external

import (
	"github.com/trimtab-dev/trimtab/external/internal/engine"
	"github.com/trimtab-dev/trimtab/node"
)

// Nodes returns what lets components have external resources of a kind among their dependents: for the
// Drivers of a component's options. A renderer then adds a T like any other object, and no such object is
// created in the cluster: the component's inventory has what is needed to find the resource again, and d
// is called as if there were one. The driver does not notice a difference.
//
// What [New] guarantees holds here, too, and so do options, annotations of T, and limits. What differs:
//
//   - The UID of a T follows from its component and its name. Its mark on the external resource names the
//     T, not the component.
//   - That no two components claim the same resource is only known of those that this process has
//     reconciled. Resources with marks are safe in any case.
//   - Objects that a [Dependent] names do not wake the component. They are looked at every ten seconds.
//   - What the driver shows in the status of a T is in the status of the component, so it must not be
//     secret.
//   - Options.Loop is not used.
//
// It panics as [New] does.
func Nodes[T Object, C, O any](d Driver[T, C, O], o Options[T, C]) node.Driver {
	return engine.NewNodes(newEngine(d, o), misfits[T, C, O](d))
}
