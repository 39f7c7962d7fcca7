// Package loop runs a [Reconciler] over the objects of one kind.
//
// A pass is one reconciliation of one object: the loop reads the object, adds its finalizer, calls
// the author's code, and writes what changed. The author returns an [Outcome] from
// [Reconciler.Reconcile] and, if something must be cleaned up before an object is deleted, a
// [CleanupOutcome] from [Cleaner.Cleanup]. Only the loop writes finalizers, status and events, and
// only the loop decides when the next pass is due. It ends a pass with at most one metadata write and
// one status write, and writes nothing if nothing changed.
//
// [New] makes a [Controller] from a Reconciler and [Options]. It is an ordinary controller of
// controller-runtime and can be added to any manager. Package looptest calls a Reconciler in tests.
//
// For external resources, see package external; for sets of Kubernetes objects, see package component.
// Start with the example of New.
package loop
