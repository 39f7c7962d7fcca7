package external

import (
	"errors"
	"fmt"

	"github.com/trimtab-dev/trimtab/external/internal/engine"
	"github.com/trimtab-dev/trimtab/node"
)

// Nodes makes a driver for dependents of components that are external resources. Put it into the Drivers of
// the component's options. A renderer then adds a T like any other object. No object of kind T is created in
// the cluster: the component's inventory contains the record of the resource, and d is called as if the
// object existed.
//
// The guarantees of [New], its options, the annotations of T and the limits apply. There are these
// differences:
//
//   - The UID of a T is derived from its component and its name. The mark on the external resource names the
//     T, not the component.
//   - Without marks, two components that claim the same resource are detected only if this process has
//     reconciled both.
//   - Objects that a [Dependent] names do not wake the component. They are checked every ten seconds.
//   - A change of what [Config] or [Authenticator] refer to does not wake the component: it is noticed at its next
//     pass. A Config is not kept from being deleted.
//   - A driver that is a [Connectable] or a [Finisher] cannot be used, and a [LateInitializer] is not asked.
//   - Options.LastApplied cannot be used, and [Dependency.Owner] has no meaning.
//   - The status of a T is stored in the status of the component, so it must not contain secrets.
//   - Options.Loop is not used.
//
// Nodes panics as [New] does.
func Nodes[T Object, C, O any](d Driver[T, C, O], o Options[T, C]) node.Driver {
	problem := misfits[T, C, O](d)
	if _, finishes := any(d).(Finisher[T, O]); finishes && problem == nil {
		problem = fmt.Errorf("%T is an external.Finisher, which cannot manage dependents of components; let the component render what Finish creates", d)
	}
	if _, publishes := any(d).(Connectable[T]); publishes && problem == nil {
		problem = fmt.Errorf("%T is an external.Connectable, which cannot manage dependents of components; leave its method Connection out", d)
	}
	if o.LastApplied && problem == nil {
		problem = errors.New("external.Options.LastApplied cannot be used for dependents of components; leave it false")
	}
	return engine.NewNodes(newEngine(d, o), problem)
}
