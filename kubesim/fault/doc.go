// Package fault runs an operator through every crash and every single fault of a scenario, inside
// go test: hundreds of runs in seconds, without a cluster and without a change to the operator. The
// operator need not use trimtab, only controller-runtime; docs/in-the-wild.md names what does not play yet.
//
// A [Scenario] says how the operator is set up and what users do, step by step. [Run] plays it
// undisturbed, and again to check that all runs are equal. From that run it derives the schedules. In
// each schedule one thing goes wrong:
//
//   - the operator is killed before or after a write;
//   - a call loses its answer, times out, is throttled, refused, fails, or meets a conflict;
//   - a cached read is stale, a watch event is delivered twice, the events of one watch are late, or merged, or
//     a watch ends and the cache lists again;
//   - a user edits, deletes or recreates an object, deletes one just before a finalizer is written, or
//     writes a status;
//   - if [Only] asks for it, the recovery from a crash is disturbed as well, a call takes long, a write takes
//     its effect late, another controller comes first at each write, or two processes work at the same time;
//   - the author's code panics at a point that [Env.Author] names.
//
// Each schedule is played in a run of its own, which is compared with the undisturbed run and checked
// against invariants. Invariants have ids, such as I2, "nothing is leaked". docs/faults.md of the
// repository lists all of them.
//
// A broken invariant is reported with the shortest schedule that breaks it: what differs, the calls of the
// run with the disturbance at its place, and a token that plays the schedule again. What the undisturbed
// run breaks is reported once; all schedules are played nevertheless, within a [Budget].
//
// The external API that the operator calls is an in-memory fake, an [ExternalAPI]. The operator's calls
// go through [HTTP], or through [Read] and [Write] in a short wrapper, so that they can be disturbed like
// any others. These functions need the process's [Env]. If the fake is a [Cloner], runs are shorter,
// because each one starts at its crash.
//
// # How it works
//
// The complete manager runs in a bubble of testing/synctest, against the API server of package
// kubesim. One thing happens at a time, so equal schedules lead to equal runs, and time is
// simulated: waiting for ten minutes costs nothing. After a process is killed, what it still tries
// from deferred functions and goroutines has no effect.
//
// An operator must therefore use the manager's config and context: no sockets of its own, no
// goroutines that outlive the manager, no lock held across a call. If it does otherwise, the test
// fails with the place in its code; it never hangs.
package fault
