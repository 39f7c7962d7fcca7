// Package looptest tests controllers of package loop in milliseconds and without an API server.
//
//   - [Run] is a table of passes: given objects, it compares the writes, the conditions, the events and the next pass.
//   - [NewEnv] is for several passes, deletions and restarts. Each pass is the controller's own, from the finalizer to
//     the retry; only the API server and the cache are in memory.
//   - [Inject] and [Lag] are for failures: refused and lost writes, cut connections, killed processes, a cache that is
//     late. Both work with a manager and a real API server, too.
//   - [CrashSweep] kills the controller before and after each of its writes, and expects the same end.
//   - [NewPass] is for the author's methods alone.
//
// The server in memory is the fake client of controller-runtime, with UIDs, generations, preconditions, dry runs, the rules for
// metadata and garbage collection, which is done at once, added. Give it the CRDs of cluster-scoped kinds in [Cluster.CRDs].
// What depends on one of these needs a real API server, which package testenv starts:
//
//   - No kind, of Kubernetes or of a CRD, is defaulted or validated beyond its metadata, and no webhook runs. So an object that
//     is read has only what was written; a comparison that defaults would disturb finds no difference here.
//   - A namespace exists as soon as an object is in it.
//   - In custom resources each list is one value, also in server-side apply, so that what two owners apply to one list is not
//     merged.
//   - Lists and watches select by labels, metadata.name and metadata.namespace. Other fields, deletecollection and the
//     propagation policy Orphan are refused. The policy Foreground is like Background.
//   - Controllers of package component do not run; see package componenttest.
//
// Sources that work beside passes (polls, schedules, channels, what a trigger.Tracker or trigger.Dynamic watches) do so here,
// too: let time pass and call synctest.Wait before [Env.Settle]. A trigger.Server takes its address and serves nobody.
//
// Start with the example of NewEnv.
package looptest
