package run

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

const (
	// lateMost is for how long the events of a watch may be behind: longer than the time that a frugal
	// operator waits for its own writes, and shorter than any cluster is quiet.
	lateMost = 9 * time.Second
	// reopens is after how much time a watch that ended is opened again. Reflectors wait for 0.8 to
	// 1.6 s, at random, which would make equal runs differ.
	reopens = 2 * time.Second
)

// lateness is one watch whose events wait while those of others come, or all of a process that has begun with old
// caches.
type lateness struct {
	of     delivery  // the first that waits
	whole  bool      // all watches of that process wait
	passes int       // that have to end before it is over
	from   int       // the first pass that counts
	until  time.Time // by when it is over in any case
	merged bool      // the watch ends then, and the cache lists again
}

// isOf reports whether an event belongs to the watch.
func (l *lateness) isOf(d delivery) bool {
	return d.gate == l.of.gate && (l.whole || d.Watch == l.of.Watch)
}

// interrupt does to the watch of an event what the schedule wants before it is delivered, and reports
// whether that is the end of the event for now. Events of a watch keep their order, and what the last one
// shows is always seen in the end.
func (e *events) interrupt(d delivery) bool {
	f, ok := e.schedule.Find(e.learned.Deliveries, schedule.Late, schedule.Merged, schedule.Gone, schedule.Closed)
	if !ok {
		return false
	}
	e.learned.Deliveries++
	e.record.DisturbedEvent(f.Kind, len(e.record.Run.Calls), "events of "+strings.Trim(d.Prefix, "/"), d.words())
	if f.Kind == schedule.Gone || f.Kind == schedule.Closed {
		e.end(d, f.Kind == schedule.Gone)
		return true
	}
	passes, _ := strconv.Atoi(f.Arg)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.late = &lateness{
		of: d, passes: max(1, passes), from: len(e.record.Run.Passes), until: time.Now().Add(lateMost), merged: f.Kind == schedule.Merged,
	}
	return true
}

// delayAll lets the events of all watches of a process wait.
func (e *events) delayAll(gate *store.Gate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.late = &lateness{
		of: delivery{gate: gate}, whole: true, passes: oldPasses, from: len(e.record.Run.Passes), until: time.Now().Add(lateMost),
	}
}

// areDelayed reports whether the events of all watches of a process wait.
func (e *events) areDelayed(gate *store.Gate) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.late != nil && e.late.whole && e.late.of.gate == gate
}

// end ends the watch of an event, with 410 Gone if gone is set.
func (e *events) end(d delivery, gone bool) {
	e.mu.Lock()
	e.opensAt = time.Now().Add(reopens)
	e.mu.Unlock()
	d.gate.Break(d.Watch, gone)
}

// timely leaves out the events that wait because they are late.
func (e *events) timely(held []delivery) []delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.late == nil {
		return held
	}
	return slices.DeleteFunc(held, e.late.isOf)
}

// catchUp ends what is late when its time has come, and reports whether it did.
func (e *events) catchUp() bool {
	e.mu.Lock()
	l := e.late
	over := l != nil && (l.passes <= 0 || !time.Now().Before(l.until))
	if over {
		e.late = nil
	}
	e.mu.Unlock()
	if !over {
		return false
	}
	if l.merged {
		e.end(l.of, true)
	} else if len(e.record.Run.Passes) == l.from {
		e.missed = true
	}
	return true
}

// interruptedUntil is until when the cluster is not at rest because events are late or a watch has to be
// opened again; zero or in the past if it may be.
func (e *events) interruptedUntil() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.late != nil {
		return e.late.until
	}
	return e.opensAt
}

// awaitReopening waits with the request of a cache until a watch that ended may be opened again.
func (e *events) awaitReopening(ctx context.Context, pass int, info *request.RequestInfo) error {
	if pass != history.Nobody || info.Verb != "watch" && info.Verb != "list" {
		return nil
	}
	e.mu.Lock()
	wait := time.Until(e.opensAt)
	e.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return cmp.Or(context.Cause(ctx), ctx.Err())
	}
}
