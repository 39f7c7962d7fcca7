package run

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/turn"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// events decides when watch events reach the operator's caches, and so what its reads show.
type events struct {
	schedule schedule.Schedule
	record   *history.Recorder
	learned  *Learned

	couldWait bool      // for the next read or pass, whether an event could have waited
	repeat    *delivery // comes once more at once
	missed    bool      // events were late and nobody could notice

	caching atomic.Bool // a cache takes in what it was told last

	mu      sync.Mutex
	hold    int       // the pass whose end events wait for; Nobody for none
	current int       // the pass that began last, if it has not ended; else Nobody
	late    *lateness // nil: no watch is behind
	opensAt time.Time // not before then a watch that ended is opened again
}

// delivery is an event that may be delivered.
type delivery struct {
	gate *store.Gate
	store.Held
}

// words are the event in words: "the change of databases.demo.dev default/orders".
func (d delivery) words() string {
	what := "the change of "
	switch {
	case d.Change.Before == nil:
		what = "the creation of "
	case d.Change.After == nil:
		what = "the deletion of "
	}
	parts := strings.Split(strings.Trim(d.Change.Key, "/"), "/")
	if grouped := len(parts) > 3 || len(parts) == 3 && strings.Contains(parts[0], "."); grouped { // else it is of the core group
		parts = append([]string{parts[1] + "." + parts[0]}, parts[2:]...)
	}
	return what + parts[0] + " " + strings.Join(parts[1:], "/")
}

func newEvents(s schedule.Schedule, record *history.Recorder, learned *Learned) *events {
	return &events{schedule: s, record: record, learned: learned, hold: history.Nobody, current: history.Nobody}
}

// again delivers once more what has to come twice, and reports whether there was something.
func (e *events) again() bool {
	d := e.repeat
	if d == nil {
		return false
	}
	e.repeat = nil
	d.gate.Repeat(d.Held)
	return true
}

// deliver delivers an event.
func (e *events) deliver(d delivery) {
	if f, ok := e.schedule.Find(e.learned.Deliveries, schedule.Twice); ok {
		e.repeat = &d
		e.record.DisturbedEvent(f.Kind, len(e.record.Run.Calls), "event of "+strings.TrimPrefix(d.Change.Key, "/"), d.words())
	}
	e.learned.Deliveries++
	e.caching.Store(true)
	e.mu.Lock()
	current := e.current
	e.mu.Unlock()
	if current != history.Nobody && current < len(e.learned.Passes) {
		e.learned.Passes[current] = true
	}
	d.gate.Deliver(d.Held)
}

// wait reports whether events are to wait while t looks at the cache; t is nil if nobody does.
func (e *events) wait(t *turn.Turn) bool {
	e.mu.Lock()
	held := e.hold != history.Nobody
	e.mu.Unlock()
	if held || t == nil {
		return held
	}
	if t.For == turn.Pass {
		_, ok := e.schedule.Find(len(e.learned.Passes), schedule.StalePass)
		return ok
	}
	_, ok := e.schedule.Find(len(e.learned.Reads), schedule.StaleRead)
	return ok
}

// look notes a read or a pass that gets its turn.
func (e *events) look(t *turn.Turn) {
	switch t.For {
	case turn.Read:
		if f, ok := e.schedule.Find(len(e.learned.Reads), schedule.StaleRead); ok {
			e.record.Disturbed(f.Kind, len(e.record.Run.Calls), t.What)
		}
		e.learned.Reads = append(e.learned.Reads, e.couldWait)
	case turn.Pass:
		n := len(e.learned.Passes)
		if f, ok := e.schedule.Find(n, schedule.StalePass); ok {
			e.record.Disturbed(f.Kind, len(e.record.Run.Calls), "pass of "+t.What)
			e.mu.Lock()
			e.hold = n
			e.mu.Unlock()
		}
		e.learned.Passes = append(e.learned.Passes, e.couldWait)
	case turn.Call:
	}
	e.couldWait = false
}

// beginPass notes the pass that runs, and endPass its end.
func (e *events) beginPass(index int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current = index
}

func (e *events) endPass(index int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == index {
		e.current = history.Nobody
	}
	if e.hold == index {
		e.hold = history.Nobody
	}
	if e.late != nil && index >= e.late.from {
		e.late.passes--
	}
}

// forget drops what a process that is gone was doing.
func (e *events) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current, e.hold, e.late = history.Nobody, history.Nobody, nil
}

// isStale reports whether the pass of that number begins with a stale view.
func (e *events) isStale(pass int) bool {
	_, ok := e.schedule.Find(pass, schedule.StalePass)
	return ok
}
