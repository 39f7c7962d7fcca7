package fault

import "github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"

// Kind is a family of schedules. Played by default are Crashes, Faults, Stale, Duplicates, Delays, Breaks, Races, Overtaken,
// Forgeries and Panics. Played only if named in [Only] are Pairs, Recoveries, Absences, Replacements, Contention, Hangs,
// OldCaches, LateWrites, Freezes, LateEffects, SlowCalls and Drift. "go doc fault Crashes" shows what each of them is.
type Kind string

// The families. Each schedule has one disturbance; the rest of the run is undisturbed.
const (
	// Crashes kill the operator before or after each write, to Kubernetes or to the external API.
	Crashes Kind = Kind(schedule.Crashes)
	// Faults lose the answer of a write, let a call time out, conflict, be throttled or fail.
	Faults Kind = Kind(schedule.Faults)
	// Stale lets a cached read miss events that the API server has sent.
	Stale Kind = Kind(schedule.Stale)
	// Duplicates deliver a watch event twice.
	Duplicates Kind = Kind(schedule.Duplicates)
	// Delays let the events of one watch be behind by one or three passes while those of other watches
	// come. Then the cache gets them one after the other, or sees only the last version of each object. For
	// each event two of these four ways are played, unless [Alternating] is disabled.
	Delays Kind = Kind(schedule.Delays)
	// Breaks end the watch of each event just before it: with 410 Gone, so that the cache lists again and
	// learns of a deletion without the last state of the object, and before every second one also as a
	// closed connection, or before all if [Alternating] is disabled.
	Breaks Kind = Kind(schedule.Breaks)
	// Pairs are two disturbances of the other kinds in one run. They are played only if named in [Only],
	// and as a sample; see [Sample].
	Pairs Kind = Kind(schedule.Pairs)
	// Races let a user edit, delete or recreate objects at any moment.
	Races Kind = Kind(schedule.Races)
	// Forgeries let a user write the status of an object: Ready, not Ready, or empty. The operator must
	// correct it in its next pass, and must not act on it.
	Forgeries Kind = Kind(schedule.Forgeries)
	// Panics let the author's code panic once, at each point that [Env.Author] names and at those
	// between a lost answer and the next call.
	Panics Kind = Kind(schedule.Panics)
	// Hangs let the author's code hang once, at each of the same points. The object for which it was
	// called must report that, the others must be reconciled, and after a restart everything must be as
	// in the undisturbed run. They are played only if named in [Only], because few frameworks abandon
	// such a call.
	Hangs Kind = Kind(schedule.Hangs)
	// Overtaken lets a user's DELETE read an object just before the operator adds its finalizer, and
	// remove the object after that call or a later one, as real API servers do. The operator must delete
	// what belongs to the object although the object no longer exists.
	Overtaken Kind = Kind(schedule.Overtakes)
	// Absences kill the operator after a write, and let a user act as in Races before it is back. An
	// operator that does not record what it is about to create then leaks it. They are played only if
	// named in [Only], because they are many.
	Absences Kind = Kind(schedule.Absences)
	// Replacements let somebody else's object take the place of one that the operator deletes, under the same
	// name and just before the call, which must not delete it (I10). They are played only if named in [Only],
	// because few operators name the UID in their deletes.
	Replacements Kind = Kind(schedule.Replacements)
	// Contention lets another controller write an object just before each write of the operator to it, from one of them on and
	// eight times at most in one step: an annotation, or a condition of its own in the status if the operator writes
	// conditions there. The operator must get through when that is over, and must leave what the other wrote
	// (I10). Or the other puts a finalizer on the object once, and removes it half a minute after the object's deletion has
	// begun. It is played only if named in [Only], because many operators take a status for theirs alone.
	Contention Kind = Kind(schedule.Contention)
	// LateEffects let a write time out and take its effect afterwards, although its process lives on: when the operator has
	// tried the same again, or after nine seconds. An operator that creates something under a name that the server
	// chooses has two then. They are played only if named in [Only], because only an idempotency key, a name
	// of its own or patience helps.
	LateEffects Kind = Kind(schedule.LateEffects)
	// SlowCalls let a call take 20 seconds or an hour, before it has its effect or before its answer is there,
	// while everything else goes on: deadlines pass, tokens and leases end. The deadline of its context ends a call. They
	// are played only if named in [Only], because they are many: two per call.
	SlowCalls Kind = Kind(schedule.SlowCalls)
	// Recoveries are all pairs of a crash and a disturbance of the recovery from it, until the cluster is at
	// rest again: another crash, a fault of a call, a panic, a stale view, an event that comes twice, late or merged,
	// a watch that ends, or a user who acts as in Races. If [Only] also names [Contention], [Replacements], [Hangs], [SlowCalls],
	// [LateEffects], [LateWrites], [Freezes] or [OldCaches], recoveries are disturbed in that way, too. Those of which the end
	// is known are not played; see [SameState] and [Independent]. They are played only if named in Only, because they are many.
	Recoveries Kind = Kind(schedule.Recoveries)
	// LateWrites let a write of a process that is dead arrive after the next one has begun: the process is killed while
	// the request is on its way, as when a leader is paused and loses its lease. It arrives just before a later call that
	// has to do with it, or 30 seconds later when all is at rest. Optimistic locks and preconditions count as usual.
	// Such runs are judged by their end (I1), and by what nobody may do meanwhile (I2, I3, I6, I10, I13). They
	// are played only if named in [Only], because they ask for more than many operators promise.
	LateWrites Kind = Kind(schedule.LateWrites)
	// Freezes let two processes work at the same time, as when a leader is paused or cut off and loses its lease: the process
	// stands still at a write, the next one begins, and just before a later call that has to do with the write, or 30 seconds
	// later, the first one goes on, with the caches and the decisions that it had, until its reconcile ends. Besides, it
	// stands still for an hour at each call of its reconciles, as a virtual machine that is suspended, and goes on by itself: all
	// its timers and deadlines are over then, and so is its lease. They are judged as LateWrites are, which is the same for
	// one request. They are played only if named in [Only], because they ask for more than many operators promise.
	Freezes Kind = Kind(schedule.Freezes)
	// OldCaches kill the operator after a write, and let all caches of the next process begin with one older state: as it
	// was before a change of the same step, or before or after a change of others in an earlier one. They catch up after three passes, or nine
	// seconds. That happens where caches are filled by lists instead of streaming lists: with an API server whose feature
	// gate WatchList is off, as by default before Kubernetes 1.34, except in 1.32, or with a client whose gate WatchListClient
	// is off, by default before client-go 0.35 or by the environment variable KUBE_FEATURE_WatchListClient=false. They are
	// played only if named in [Only].
	OldCaches Kind = Kind(schedule.OldCaches)
	// Drift lets somebody else delete or edit an object that the operator made and that stays, such as a Deployment: when a step is
	// over and all is quiet, and just before writes of the operator. The edit changes the first field that the operator wrote and that may be
	// changed: a text, a number or a switch. The step must end as without that. It finds an operator that does not watch what it
	// makes, or does not compare it with what it wants. It is played only if named in [Only], because many operators restore
	// what they made only at the next resync, or leave edits on purpose.
	Drift Kind = Kind(schedule.Drifts)
)

// SampledPairs is the number of [Pairs] that are played unless [Sample] sets another one.
const SampledPairs = 200
