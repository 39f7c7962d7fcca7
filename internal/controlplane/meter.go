package controlplane

import (
	"encoding/json"
	"os"
	"sync"
	"time"
)

// meter tells a Progress, and processes that wait, how the build goes.
type meter struct {
	tell  Progress
	file  string
	began time.Time

	mu   sync.Mutex
	step Step
}

// newMeter makes a meter that keeps the newest step in file for other processes to read.
func newMeter(tell Progress, file string) *meter {
	if tell == nil {
		tell = func(Step) {}
	}
	return &meter{tell: tell, file: file, began: time.Now(), step: Step{Phase: Preparing}}
}

// set changes the step; it is told at the next second.
func (m *meter) set(phase Phase, done, total int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.step = Step{Phase: phase, Done: done, Total: total}
}

func (m *meter) now() Step {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.step
	s.Elapsed = time.Since(m.began)
	return s
}

// start tells the step once a second from now on until stop, which may be called twice.
func (m *meter) start() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer os.Remove(m.file)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			s := m.now()
			m.tell(s)
			m.publish(s)
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	}()
	return sync.OnceFunc(func() { close(quit); <-done })
}

// publish writes the step for processes that wait. It is a courtesy: they can do without.
func (m *meter) publish(s Step) {
	if text, err := json.Marshal(s); err == nil {
		_ = os.WriteFile(m.file, text, 0o600)
	}
}

// waiting tells that another process is at work, and what it last published.
func (m *meter) waiting() {
	m.set(Waiting, 0, 0)
	s := m.now()
	var other Step
	if text, err := os.ReadFile(m.file); err == nil && json.Unmarshal(text, &other) == nil {
		s.Other = &other
	}
	m.tell(s)
}

func (m *meter) built() {
	m.set(Built, 0, 0)
	m.tell(m.now())
}
