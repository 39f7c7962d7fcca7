// Package run plays an operator through one schedule: the complete manager in a bubble of simulated
// time, in a sandbox of its own, one thing at a time.
package run

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// Scenario is what is played; package fault says what each field means.
type Scenario struct {
	Name     string
	Manager  manager.Options
	SetUp    func(manager.Manager, *Process) error
	Replicas int
	Before   []Step // the operator starts; only what they do counts
	Steps    []Step
	Races    []disturb.Step
	Quiet    time.Duration
	Patience time.Duration
	Reads    int
	Shared   []string
	Secrets  []string
}

// Step is what users or others do at one time.
type Step struct {
	Name   string
	Do     func(ctx context.Context, w *sandbox.World) error // nil only lets time pass
	Expect func(ctx context.Context, w *sandbox.World) error // nil expects nothing
	Wait   time.Duration
	By     string // who acts
}

// Job is one run that is to be made.
type Job struct {
	Number   int // in the list it is played from
	Schedule schedule.Schedule
	// From is where to begin; nil is the beginning.
	From *sandbox.Snapshot
	// Like is the undisturbed run to compare it with; nil if this is one.
	Like *history.Run
	// Alike are others whose ends are as right.
	Alike []*history.Run
	// Last is the step after which to stop; 0 plays all.
	Last int
	// Later is how much later than others the run begins.
	Later time.Duration
	// Extra follows the last step: Racing, when all is quiet. Early lets it come before the last step instead,
	// as a part of it.
	Extra  *disturb.Step
	Racing Racing
	Early  bool
	// Instead is done in the last step in place of what that step does; nil does what it does.
	Instead func(ctx context.Context, w *sandbox.World) error
	// Without are steps in which nobody does anything.
	Without []int
	// Goal is how the run is to end after Extra, for which the operator gets the time that it may take; nil waits for nothing.
	Goal *history.Run
	// Keep makes snapshots; Watchful keeps silence after each step; States notes what is durable at each write.
	Keep, Watchful, States bool
	// Family is what the job is counted as; empty for the family of its schedule.
	Family schedule.Family
}

// Racing is a race and the step during which it happens.
type Racing struct{ Step, Race int }

// lastStep is the number of the step after which a run is to end.
func (j Job) lastStep(steps int) int {
	for _, d := range j.Schedule {
		if d.Kind == schedule.Until {
			return min(d.At, steps)
		}
	}
	if j.Last > 0 {
		return j.Last
	}
	return steps
}

// wanted are the states that a step may end with.
func (j Job) wanted(step int) []history.State {
	states := []history.State{j.Like.Steps[step].State}
	for _, run := range j.Alike {
		states = append(states, run.Steps[step].State)
	}
	return states
}

// Result is what came of a job.
type Result struct {
	Run *history.Run
	// Err is why the run could not be played to its end: a fault of the scenario if it was
	// undisturbed, a violation otherwise.
	Err error
	// Leaked is set if goroutines are left that are not known to be, Lost if the worker's server is lost.
	Leaked, Lost bool
	stays        bool // goroutines are left, so the bubble cannot end
	// Void is set if a race did nothing, so that the run says nothing.
	Void bool
	// Learned is what the undisturbed run learns for the schedules that follow it.
	Learned Learned
}

// Learned is what a run shows of the places where it could be disturbed.
type Learned struct {
	// Reads and Passes say, for each cached read and each pass, whether an event could have waited for it.
	Reads, Passes []bool
	// Deliveries is how many events were delivered.
	Deliveries int
	// Points are the visits to the author's code, in their order.
	Points []Visit
	// Snapshots are where schedules can begin; nil if none were kept.
	Snapshots map[Point]*sandbox.Snapshot
	// States are hashes of what was durable before and after each write; nil if none were made.
	States map[Point]string
	// Settled is how much there was when each step was over, Crashed when a process was killed last.
	Settled map[int]history.Position
	Crashed history.Position
	// Unseen are controllers with a request type of their own.
	Unseen []string
	// Chances are what several goroutines waited for in an order that was left to chance.
	Chances []string
	// External is the external API as the run left it.
	External *sandbox.External
}

// Point is where a schedule can begin: before or after a call.
type Point struct {
	Call  int
	After bool
}

// Visit is one of a run to a point in the author's code.
type Visit struct {
	What  string
	Calls int // that the operator had made by then
	Step  int
	// Cache is set if a cache asks, which may hold a lock.
	Cache bool
}

// count adds to a position how much was learned by then.
func (l *Learned) count(at history.Position) history.Position {
	at.Reads, at.Looks, at.Deliveries, at.Points = len(l.Reads), len(l.Passes), l.Deliveries, len(l.Points)
	return at
}
