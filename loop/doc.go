// Package loop runs a [Reconciler] over the objects of one kind: it fetches, gates, calls
// the author, and commits what changed with the fewest writes that can express it.
//
// An author returns an [Outcome] from [Reconciler.Reconcile] and, if something must be
// undone before an object goes, a [CleanupOutcome] from [Cleaner.Cleanup]. The loop alone
// writes finalizers, status, events and requeue times: at most one metadata write and one
// status write per pass, none when nothing changed.
//
// [New] makes a [Controller] from a Reconciler and [Options]; it is an ordinary
// controller-runtime controller underneath and mounts into any manager.
//
// Things outside the cluster are not here (package external), nor sets of Kubernetes
// objects. Start with the example of New.
package loop
