package history

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Who makes changes, besides the cluster's own controllers.
const (
	Operator   = "operator"
	User       = "user"
	Foreigner  = "foreign" // another writer, who acts because a schedule wants it
	beforehand = "setup"
)

// IsController reports whether a change was made by a controller that is not under test: one of the cluster's own,
// or a scenario's actor.
func IsController(by string) bool { return !IsReserved(by) }

// IsReserved reports whether a name means somebody who is no controller of others, and so cannot be that of an actor.
func IsReserved(by string) bool {
	return slices.Contains([]string{"", Operator, User, Foreigner, beforehand}, by)
}

// Recorder writes the record of a run. It is safe for concurrent use; whoever reads the record does so
// while nothing happens.
type Recorder struct {
	Run *Run

	mu    sync.Mutex
	marks []Mark
}

// Mark says who made the revisions after From up to To.
type Mark struct {
	From, To int64
	By       string
	Call     int
	Step     int
}

// Step is the number of the present step, or of the last one.
func (r *Recorder) Step() int { return max(0, len(r.Run.Steps)-1) }

// Mark notes who made the revisions after from up to to.
func (r *Recorder) Mark(from, to int64, by string, call int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if to > from {
		r.marks = append(r.marks, Mark{From: from, To: to, By: by, Call: call, Step: r.Step()})
	}
}

// Marks are all marks, oldest first.
func (r *Recorder) Marks() []Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.marks)
}

// Resume begins with a part of the record of another run, and with its marks.
func (r *Recorder) Resume(from *Run, at Position, marks []Mark) {
	r.Run.Calls = slices.Clone(from.Calls[:at.Call+1])
	r.Run.Passes = slices.Clone(from.Passes[:at.Passes])
	r.Run.External = slices.Clone(from.External[:at.Views])
	r.Run.Steps = slices.Clone(from.Steps[:at.Steps])
	r.Run.Processes = []Process{{Started: from.Processes[0].Started}}
	r.marks = slices.Clone(marks)
}

// Position is a moment in a record: how much of it there was.
type Position struct {
	// Call is the call that was being made, Passes, Views and Steps how many there were.
	Call, Passes, Views, Steps int
	// Reads, Looks, Deliveries and Points are how many reads from caches, beginnings of passes, events and
	// visits to the author's code there were: by these numbers schedules name them.
	Reads, Looks, Deliveries, Points int
}

// Position is the present moment, during a call.
func (r *Recorder) Position(call int) Position {
	return Position{Call: call, Passes: len(r.Run.Passes), Views: len(r.Run.External), Steps: len(r.Run.Steps)}
}

// BeginCall numbers a call and notes it.
func (r *Recorder) BeginCall(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.Index, c.At = len(r.Run.Calls), time.Now()
	r.Run.Calls = append(r.Run.Calls, *c)
}

// EndCall notes what became of a call.
func (r *Recorder) EndCall(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Run.Calls[c.Index] = *c
}

// BeginPass numbers a pass and notes it.
func (r *Recorder) BeginPass(p Pass) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Index, p.Begin, p.First = len(r.Run.Passes), time.Now(), len(r.Run.Calls)
	r.Run.Passes = append(r.Run.Passes, p)
	return p.Index
}

// EndPass notes what a pass came to.
func (r *Recorder) EndPass(index int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if index >= len(r.Run.Passes) {
		return
	}
	p := &r.Run.Passes[index]
	p.Last, p.Ended = len(r.Run.Calls), true
	if err != nil {
		p.Err = err.Error()
	}
}

// Disturbed notes a disturbance at a call, or at no call, and where it hit in words.
func (r *Recorder) Disturbed(kind string, call int, at string) { r.DisturbedEvent(kind, call, at, "") }

// DisturbedEvent is like [Recorder.Disturbed], for an event.
func (r *Recorder) DisturbedEvent(kind string, call int, at, event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Run.Faults = append(r.Run.Faults, Fault{Kind: kind, Call: call, Next: len(r.Run.Calls), At: at, Time: time.Now(), Step: r.Step(), Event: event})
}

// BeginProcess numbers a process and notes it.
func (r *Recorder) BeginProcess() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Run.Processes = append(r.Run.Processes, Process{Started: time.Now()})
	return len(r.Run.Processes) - 1
}

// Process changes what is noted of a process.
func (r *Recorder) Process(number int, change func(*Process)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.Run.Processes[number])
}

// Attribute says of a change in the storage who made it, by the marks. Changes come in the order of
// their revisions; rest are the marks that are left for those that follow.
func (c *Change) Attribute(marks []Mark) (rest []Mark) {
	for len(marks) > 0 && marks[0].To < c.Rev {
		marks = marks[1:]
	}
	c.By, c.Call = beforehand, Nobody
	if len(marks) > 0 && marks[0].From < c.Rev {
		c.By, c.Call, c.Step = marks[0].By, marks[0].Call, marks[0].Step
	}
	return marks
}

// Webhook changes what is noted of the webhook at a path.
func (r *Recorder) Webhook(path string, change func(*Webhook)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := &r.Run.Webhooks
	i, found := slices.BinarySearchFunc(*all, path, func(h Webhook, path string) int { return strings.Compare(h.Path, path) })
	if !found {
		*all = slices.Insert(*all, i, Webhook{Path: path})
	}
	change(&(*all)[i])
}
