// Package children manages the Kubernetes objects that an object of a custom kind has as children.
//
// [Named] describes a child: its name and a function from the owner to the object as it should be. [Of] makes a
// [Set] of children, [New] a controller. In a pass, [Set.Apply] creates, changes and deletes children until they are
// as described, and says what they wait for. It sends no request for a child that is as it should be. A controller
// that does nothing else needs no Reconciler.
//
// A child can be created again at any time, so it has no finalizer, and garbage collection deletes it with its owner.
// [Child.Protected] and [Child.Elsewhere] are for the others.
//
// Children have no order, and nothing is recorded about them: they are found by owner reference and label. For sets
// with waves, policies per object, charts, other clusters, or kinds that are not known in advance, see package
// component. Start with the example of New.
package children
