package controlplane

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// meter reports the progress of a build to a Progress and to waiting processes.
type meter struct {
	tell  Progress
	file  string
	began time.Time

	mu   sync.Mutex
	step Step
}

// newMeter returns a meter that writes the latest step to file, where other processes read it.
func newMeter(tell Progress, file string) *meter {
	if tell == nil {
		tell = func(Step) {}
	}
	return &meter{tell: tell, file: file, began: time.Now(), step: Step{Phase: Preparing}}
}

// set changes the step, which is reported within a second.
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

// start reports the step once a second until stop is called. stop may be called twice.
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

// publish writes the step for waiting processes. They also work without it, so errors are ignored.
func (m *meter) publish(s Step) {
	if text, err := json.Marshal(s); err == nil {
		_ = os.WriteFile(m.file, text, 0o600)
	}
}

// waiting reports that another process is building, and what it last published.
func (m *meter) waiting() {
	m.set(Waiting, 0, 0)
	s := m.now()
	var other Step
	if text, err := os.ReadFile(m.file); err == nil && json.Unmarshal(text, &other) == nil {
		s.Other = &other
	}
	m.tell(s)
}

// instead reports why the control plane is built although it was released.
func (m *meter) instead(err error) {
	m.set(Preparing, 0, 0)
	s := m.now()
	s.Instead = fmt.Sprintf("the released control plane cannot be used: %v; it is built instead, which takes several minutes", err)
	m.tell(s)
}

func (m *meter) built() {
	m.set(Built, 0, 0)
	m.tell(m.now())
}
