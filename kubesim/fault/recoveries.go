package fault

import (
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/plan"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
)

// recovering returns the jobs that disturb the recoveries from crashes. The crashes are played first, to learn
// what the operator does after each.
func (e *exploration) recovering() ([]run.Job, error) {
	silent := *e.plan
	silent.Pruned = map[plan.Rule]int{} // counted with the crashes themselves
	crashes := silent.Crashes()
	for i := range crashes {
		crashes[i].States = true
	}
	whole, err := e.wholly(run.Job{States: true})
	if err != nil {
		return nil, err
	}
	if err := e.quietRaces(func(run.Racing) bool { return true }); err != nil {
		return nil, err
	}
	all, err := e.recoveries(Recoveries, crashes)
	return e.plan.Recovering(all, whole.Learned.States, e.quiet), err
}

// recoveries plays crashes to learn what follows each, in the order of the calls. It leaves out those that say
// nothing, and plays no more than twice as many as there may be schedules of the kind that is planned by them.
func (e *exploration) recoveries(kind Kind, crashes []run.Job) ([]plan.Recovery, error) {
	silent := *e.plan
	silent.Pruned = map[plan.Rule]int{}
	crashes = silent.Thin(crashes, 2*e.options.most[kind])
	all := make([]plan.Recovery, len(crashes)) // whichever run ends first
	said := make([]bool, len(crashes))
	for i := range crashes {
		crashes[i].Like = e.reference.Run
	}
	e.teller.begin(part{what: "runs that others are planned by", all: len(crashes)})
	_, err := e.simulation.PlayUntil(e.t, e.options.workers, crashes, e.over, func(j run.Job, r run.Result) {
		all[j.Number], said[j.Number] = e.plan.NewRecovery(j, r)
		e.teller.did()
	})
	kept := all[:0]
	for i, v := range all {
		if said[i] {
			kept = append(kept, v)
		}
	}
	return kept, err
}

// arriving returns the jobs in which writes of a process that is dead arrive when the next one has begun.
func (e *exploration) arriving() ([]run.Job, error) {
	all, err := e.recoveries(LateWrites, e.plan.Departures())
	return e.plan.Arriving(all), err
}

// freezing returns the jobs in which a process stands still at a write and goes on when the next one works.
func (e *exploration) freezing() ([]run.Job, error) {
	all, err := e.recoveries(Freezes, e.plan.Departures())
	return e.plan.Thawing(all), err
}

// timingOut returns the jobs in which writes take effect after their callers got a timeout. Writes that have no effect
// are played first, to learn whether the operator tries again.
func (e *exploration) timingOut() ([]run.Job, error) {
	all, err := e.recoveries(LateEffects, e.plan.Unanswered())
	return e.plan.TimingOut(all), err
}
