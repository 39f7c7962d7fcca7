package run

import (
	"runtime"
	"slices"
	"sync"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// points are where a run comes to the author's code, which can panic or hang there.
type points struct {
	schedule schedule.Schedule
	record   *history.Recorder
	events   *events

	mu      sync.Mutex
	learned *Learned
}

// visit notes that a process came to a point, and does there what the schedule wants.
func (s *points) visit(p *Process, what string) {
	s.mu.Lock()
	n := len(s.learned.Points)
	s.learned.Points = append(s.learned.Points, Visit{
		What: what, Calls: len(s.record.Run.Calls), Step: s.record.Step(), Cache: s.events.caching.Load(),
	})
	s.mu.Unlock()
	if d, ok := s.schedule.Find(n, schedule.Panic); ok {
		s.record.Disturbed(d.Kind, history.Nobody, what)
		panic(&injected{"fault: the author's code panics at " + what, func() { p.collapse(what) }})
	}
	if d, ok := s.schedule.Find(n, schedule.Hang); ok {
		s.record.Disturbed(d.Kind, history.Nobody, what)
		<-p.ended
	}
}

// noteUnseen notes a controller whose passes cannot be wrapped.
func (s *points) noteUnseen(controller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.learned.Unseen, controller) {
		s.learned.Unseen = append(s.learned.Unseen, controller)
	}
}

// injected is what the author's code panics with when a schedule wants it to.
type injected struct {
	text string
	// ends notes that nobody recovers it.
	ends func()
}

// String is asked for by whoever recovers a panic and reports it, and by the runtime just before a
// panic that nobody recovers ends the process. Then the process that is simulated ends instead, and
// of the real one this goroutine alone: its deferred functions have run.
func (i *injected) String() string {
	if isFatal() {
		i.ends()
		runtime.Goexit()
	}
	return i.text
}

// isFatal reports whether the runtime prepares to end the process with a panic. A runtime that does
// that elsewhere one day ends the process, as without this.
func isFatal() bool {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if f.Function == "runtime.preprintpanics" {
			return true
		}
		if !more {
			return false
		}
	}
}
