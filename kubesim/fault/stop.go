package fault

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/plan"
)

// stopped is the signal that asked the process to end: explorations then report what they have found, and none begins any more.
//
//arch:state a signal, which is one per process
var stopped atomic.Pointer[string]

// heedSignals lets the first signal that asks the process to end stop explorations. The next one ends the process.
func heedSignals(say func(string)) (undo func()) {
	signals, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			name := "SIGTERM"
			if s == os.Interrupt {
				name = "SIGINT"
			}
			stopped.CompareAndSwap(nil, &name)
			say(name + " came: what was found is reported when the runs that are being played are over; the next signal ends the process")
		case <-over:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
	}
}

// overError is why an exploration ends before all was played.
type overError string

func (e overError) Error() string { return "not all was played, " + string(e) }

func isOver(err error) bool {
	_, is := errors.AsType[overError](err)
	return is
}

// overAt says why nothing is to be played after a time, "" if it may; the zero time never comes.
func overAt(until time.Time) overError {
	if s := stopped.Load(); s != nil {
		return overError(*s + " stopped it")
	}
	if !until.IsZero() && time.Now().After(until) {
		return "the time was over"
	}
	return ""
}

// over reports whether no more schedules are to be played.
func (e *exploration) over() bool { return overAt(e.clock.until) != "" }

// mustEnd reports whether nothing more is to be played, nor what schedules are planned by or made shorter with: else what was
// found would be lost.
func (e *exploration) mustEnd() bool { return overAt(e.clock.last) != "" }

// stop notes what was left out because the time was over.
func (e *exploration) stop(played, of int) {
	if played == of {
		return
	}
	e.report.Unplayed = of - played
	e.plan.Pruned[plan.OutOfTime] += of - played
	note := fmt.Sprintf("%d of %d schedules were not played, %s; go on with -fault.resume='%s@%d'",
		of-played, e.clock.all, string(overAt(e.clock.until)), e.scenario.Name, e.clock.skipped+played)
	if stopped.Load() == nil {
		note += ", or allow more with fault.Budget or go test's -timeout"
	}
	e.report.Notes = append(e.report.Notes, note)
}

// stopBefore notes that the exploration ended before all schedules were known.
func (e *exploration) stopBefore(err error) {
	e.report.Unplayed = 1 // at least
	e.plan.Pruned[plan.OutOfTime]++
	note := fmt.Sprintf("%v: it ended in the runs that come before the schedules, of which none was played", err)
	if stopped.Load() == nil {
		note += "; allow more with go test's -timeout"
	}
	e.report.Notes = append(e.report.Notes, note)
}
