// Package fault plays an operator through every crash and every single fault of a scenario,
// inside go test: hundreds of runs in seconds, without a cluster and without a change of the
// operator. It needs nothing of trimtab; any operator on controller-runtime will do.
//
// A [Scenario] says how the operator is set up and what users do, step by step. [Run] plays it once
// undisturbed, and again to see that both runs are the same. From that it lists the schedules. In each
// of them one thing goes wrong:
//
//   - the operator is killed, before or after a write;
//   - a call loses its answer, times out, is throttled, refused, fails, or meets a conflict;
//   - a cached read shows what was true a moment ago, or a watch event comes twice;
//   - a user edits, deletes or re-creates an object, deletes one just before a finalizer is written, or
//     writes a status;
//   - the author's code panics, at points that [Env.Author] names.
//
// Each schedule is a run of its own. It is compared with the undisturbed run and with invariants, which
// have an id: I2 is "nothing is leaked", I3 "nothing is created twice", I8 "Ready only where it is
// true", I5 "silence at rest". docs/faults.md of the repository lists all of them.
//
// What breaks is reported with the shortest schedule, as a table of calls with the
// disturbance in its place, with what differs in the end, and with a token that plays it again.
//
// The API outside the cluster that an operator calls is a fake in memory, an [ExternalAPI]. The
// operator's calls to it go through [HTTP], or through [Read] and [Write] in a wrapper of a few lines,
// so that they can be disturbed like any other; [Env] is what they need. If the fake is a [Cloner],
// runs are shorter, because each begins at its crash.
//
// # How it works
//
// The complete manager runs in a bubble of testing/synctest, against the API server of package
// kubesim. One thing happens at a time, so equal schedules make equal runs, and time is
// simulated: ten minutes of waiting cost nothing. A process that was killed is fenced: what it
// still tries from deferred functions and goroutines has no effect.
//
// An operator must therefore keep to the manager's config and context: no sockets of its own,
// no goroutines that outlive the manager, no lock held across a call. Where one does not, the test
// fails with the place in its code; it never hangs.
package fault
