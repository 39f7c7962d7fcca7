// Package fault plays an operator through every crash and every single fault of a scenario,
// inside go test: hundreds of runs in seconds, without a cluster and without a change of the
// operator. It needs nothing of trimtab; any operator on controller-runtime will do.
//
// A [Scenario] says what world the operator lives in, how its main sets it up, and what users
// do, step by step. [Run] plays it once undisturbed, and again to see that it is the same
// twice. From that it lists the schedules: the operator killed before and after each write; each
// call with its answer lost, timed out, throttled, refused, failed or in conflict; each cached
// read with a view that lags; each watch event twice; a user who edits, deletes or re-creates
// at each moment, or whose delete had begun before a finalizer was written; code of the author's that
// panics, at points that [Env.Author] names. Each is a run of its own, held against the undisturbed
// one and against what must hold in any run: nothing leaked, nothing made twice, Ready only where
// it is true, silence at rest, and more; docs/faults.md has the list.
//
// What breaks is reported with the shortest schedule, as a table of calls with the
// disturbance in its place, with what differs in the world, and with a token that plays it again.
//
// A vendor outside of Kubernetes is a fake in memory, an [ExternalAPI]. The operator's calls to
// it go through [HTTP], or through [Read] and [Write] in a wrapper of a few lines, so that they
// can be lost like any other; [Env] is what they need. A fake that is a [Cloner] makes crashes
// begin where they happen.
//
// # How it works
//
// The complete manager runs in a bubble of testing/synctest, against the API server of package
// kubesim. One thing happens at a time, so equal schedules make equal runs, and time is
// simulated: ten minutes of waiting cost nothing. A process that was killed is fenced: what it
// still tries from deferred functions and goroutines has no effect.
//
// An operator must therefore keep to the manager's config and context: no sockets of its own,
// no goroutines that outlive the manager, no lock held across a call. Whatever does not is
// named with its place, and never hangs.
package fault
