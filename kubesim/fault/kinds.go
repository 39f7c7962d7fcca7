package fault

import "github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"

// Kind is a family of schedules. Crashes, Faults, Stale, Duplicates, Delays, Breaks, Races, Overtaken, Forgeries and Panics are
// played by default. [Only] names the others: they are many, or ask for more than most operators promise.
// "go doc fault Crashes" shows what each of them is.
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
	// Delays hold back the events of one watch for one or three reconciles, while those of other watches come. Then the
	// cache gets all of them, or only the last version of each object. Two of these four ways are played for each
	// event, unless [Alternating] is disabled.
	Delays Kind = Kind(schedule.Delays)
	// Breaks end a watch just before an event. After 410 Gone, the cache lists again and learns of deletions without
	// the last state of the object. A closed connection is played before every second event, unless [Alternating] is disabled.
	Breaks Kind = Kind(schedule.Breaks)
	// Races let a user edit, delete or recreate objects at any moment.
	Races Kind = Kind(schedule.Races)
	// Overtaken lets a user's DELETE read an object just before the operator adds its finalizer, and
	// remove the object after that call or a later one, as real API servers do. The operator must still delete
	// what belongs to the object.
	Overtaken Kind = Kind(schedule.Overtakes)
	// Forgeries let a user write the status of an object: Ready, not Ready, or empty. The operator must
	// correct it in its next reconcile, and must not act on it.
	Forgeries Kind = Kind(schedule.Forgeries)
	// Panics let the author's code panic once, at each point that [Env.Author] names and at those
	// between a lost answer and the next call.
	Panics Kind = Kind(schedule.Panics)
	// Hangs let the author's code hang once, at each of the same points. The object for which it was
	// called must report that, and the others must be reconciled. Few frameworks abandon such a call.
	Hangs Kind = Kind(schedule.Hangs)
	// Absences kill the operator after a write, and let a user act as in Races before it is back. An
	// operator that does not record what it is about to create then leaks it.
	Absences Kind = Kind(schedule.Absences)
	// Replacements let somebody replace an object just before the operator deletes it. The operator must not delete the
	// new object (I10). Few operators name the UID in their deletes.
	Replacements Kind = Kind(schedule.Replacements)
	// Contention lets another controller write an object just before each write of the operator to it, eight times at most in
	// one step: an annotation, or a condition. Or the other controller adds a finalizer, and removes it half a minute after the
	// deletion has begun. The operator must get through, and must leave what the other one wrote (I10).
	Contention Kind = Kind(schedule.Contention)
	// LateEffects let a write time out and take its effect later, when the operator has tried again or after nine seconds.
	// An idempotency key, a name of its own or patience helps.
	LateEffects Kind = Kind(schedule.LateEffects)
	// SlowCalls let a call take 20 seconds or an hour, before it has its effect or before its answer is there. Meanwhile,
	// deadlines pass, and tokens and leases end.
	SlowCalls Kind = Kind(schedule.SlowCalls)
	// Recoveries are a crash and a disturbance of the recovery from it. They include all kinds that are played by default,
	// except Forgeries and Overtaken. [Contention], [Replacements], [Hangs], [SlowCalls], [LateEffects],
	// [LateWrites], [Freezes] and [OldCaches] disturb recoveries if Only names them, too. See [SameState] and [Independent] for what
	// is left out.
	Recoveries Kind = Kind(schedule.Recoveries)
	// LateWrites kill the process while a write is on its way. The write arrives just before a later call that has to do
	// with it, or after 30 seconds. Such a run is judged by its end (I1), and by what nobody may do
	// meanwhile (I2, I3, I6, I10, I13, I17). A resourceVersion, a UID or an idempotency key helps.
	LateWrites Kind = Kind(schedule.LateWrites)
	// Freezes let two processes work at the same time, as when a leader loses its lease. The first one stands still at a
	// write, and goes on when the second one works, with its old caches, until its reconcile ends. They are judged as
	// LateWrites are.
	Freezes Kind = Kind(schedule.Freezes)
	// OldCaches kill the operator after a write, and let all caches of the next process begin with one older state. They
	// catch up after three reconciles or nine seconds. That happens where caches are filled by lists instead of streaming
	// lists: without the feature gate WatchList of the API server, or WatchListClient of the client.
	OldCaches Kind = Kind(schedule.OldCaches)
	// Drift lets somebody delete or edit an object that the operator made. The step must end as without that. Many operators
	// restore such objects only at the next resync, or leave edits on purpose.
	Drift Kind = Kind(schedule.Drifts)
	// Pairs are two crashes, faults or stale views in one run, as a sample; see [Sample].
	Pairs Kind = Kind(schedule.Pairs)
)

// SampledPairs is the number of [Pairs] that are played unless [Sample] sets another one.
const SampledPairs = 200
