package fault

import "github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"

// Kind is a family of schedules.
type Kind string

// The families. Each schedule has one disturbance; the rest of the run is undisturbed.
const (
	// Crashes kill the operator before or after each write, to Kubernetes or to the external API.
	Crashes Kind = Kind(schedule.Crashes)
	// Faults lose the answer of a write, let a call time out, conflict, be throttled or fail.
	Faults Kind = Kind(schedule.Faults)
	// Stale lets a cached read see less than the API server has sent.
	Stale Kind = Kind(schedule.Stale)
	// Duplicates deliver a watch event twice.
	Duplicates Kind = Kind(schedule.Duplicates)
	// Pairs are two disturbances of the other kinds in one run, a sample of [SampledPairs] or as
	// [Sample] says. They are not played unless asked for.
	Pairs Kind = Kind(schedule.Pairs)
	// Races let a user edit, delete or re-create objects at any moment.
	Races Kind = Kind(schedule.Races)
	// Forgeries let a user write an object's status: that it is Ready, that it is not, or nothing.
	// The operator has to correct it in its next pass, and to do nothing because of it.
	Forgeries Kind = Kind(schedule.Forgeries)
	// Panics let the author's code panic once at each of its points, as [Env.Author] names them, and
	// at those between an answer that was lost and the next call.
	Panics Kind = Kind(schedule.Panics)
	// Hangs let the author's code never return, once from each of the same points: the object that it was
	// called for has to say so, the others go on, and after a restart all is as it should be.
	// They are not played unless asked for, as few frameworks leave such a call behind.
	Hangs Kind = Kind(schedule.Hangs)
	// Overtaken lets a user's DELETE read an object just before the operator puts a finalizer on
	// it, and remove it after that or after a later call: an API server decides by what it read.
	// What belongs to the object has to be deleted although no object asks for that any more.
	Overtaken Kind = Kind(schedule.Overtakes)
)

// SampledPairs is how many pairs an exploration plays that is asked for [Pairs], unless [Sample]
// says otherwise.
const SampledPairs = 200
