// Package fault runs an operator through every crash and every single fault of a scenario, inside
// go test. It plays hundreds of runs in seconds, without a cluster and without a change to the operator. The
// operator has to use controller-runtime. docs/in-the-wild.md names what does not play yet.
//
// A [Scenario] says how the operator is set up and what users do, step by step. [Run] plays it
// undisturbed, and derives the schedules from that run. In each schedule one thing goes wrong:
//
//   - the operator is killed before or after a write;
//   - a call loses its answer, times out, is throttled, refused, fails, or meets a conflict;
//   - a cached read is stale, a watch event is delivered twice, the events of one watch are late, or merged, or
//     a watch ends and the cache lists again;
//   - a user edits, deletes or recreates an object, deletes one just before a finalizer is written, or
//     writes a status;
//   - the author's code panics at a point that [Env.Author] names.
//
// [Only] asks for further kinds: disturbed recoveries, slow calls, late writes, other controllers, two processes at a time.
//
// Each run is compared with the undisturbed run and checked against invariants. Invariants have ids, such
// as I2, "nothing is leaked". docs/faults.md of the repository lists all of them.
//
// A report has the shortest schedule that breaks an invariant: what differs, the calls of the run, and a token
// that replays the schedule. What the undisturbed run breaks is reported once.
//
// The external API that the operator calls is an in-memory fake, an [ExternalAPI]. The operator's calls
// go through [HTTP], or through [Read] and [Write] in a short wrapper. These functions need the
// process's [Env]. If the fake is a [Cloner], runs are shorter, because each one starts at its crash.
//
// # How it works
//
// The complete manager runs in a bubble of testing/synctest, against the API server of package
// kubesim. One thing happens at a time, so equal schedules lead to equal runs. Time is
// simulated: waiting for ten minutes costs nothing. After a process is killed, what it still tries
// from deferred functions and goroutines has no effect.
//
// An operator must use the manager's config and context. It must open no sockets, leave no goroutines
// behind, and hold no lock across a call. Otherwise, the test fails with the place in its code; it never hangs.
package fault
