package loop_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// service is something outside the cluster that has a value for each object.
type service struct {
	mu      sync.Mutex
	values  map[string]int
	fetches map[string]int
	away    error
}

func (s *service) set(name string, value int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[name] = value
}

func (s *service) goAway(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = err
}

// fetched returns how often the value of an object was fetched.
func (s *service) fetched(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches[name]
}

func (s *service) one(_ context.Context, p *probe.Probe) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetches[p.Name]++
	return s.values[p.Name], s.away
}

func (s *service) all(namespace func() string) func(context.Context) (map[types.NamespacedName]int, error) {
	return func(context.Context) (map[types.NamespacedName]int, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		values := map[types.NamespacedName]int{}
		for name, value := range s.values {
			s.fetches[name]++
			values[types.NamespacedName{Namespace: namespace(), Name: name}] = value
		}
		return values, s.away
	}
}

// TestPolls: values outside the cluster are polled.
func TestPolls(t *testing.T) {
	t.Parallel()
	const period = 300 * time.Millisecond // a small part of which a change is on its way to the call
	for name, global := range map[string]bool{
		"002-62 polling, for each object": false,
		"002-62 polling, for all objects": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &service{values: map[string]int{"a": 1, "b": 1}, fetches: map[string]int{}}
			p := &trigger.Poll[*probe.Probe, int]{Name: "levels", Every: period, Fetch: s.one}
			var w *controllerTest
			ready := make(chan struct{})
			if global {
				p.Fetch, p.FetchAll = nil, s.all(func() string { <-ready; return w.namespace })
			}
			var mu sync.Mutex
			read := map[string]int{}
			a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
				mu.Lock()
				defer mu.Unlock()
				if value, ok := p.Get(r.Obj); ok {
					read[r.Obj.Name] = value
				}
				return loop.Done()
			})
			w = newControllerTest(t, a, options{Sources: []trigger.Source[*probe.Probe]{p}})
			close(ready)
			has := func(want map[string]int) func() bool {
				return func() bool { mu.Lock(); defer mu.Unlock(); return maps.Equal(read, want) }
			}
			more := func(name string, n int) {
				t.Helper()
				if before := s.fetched(name); !poll.Until(func() bool { return s.fetched(name) >= before+n }) {
					t.Fatalf("the value of %s is not fetched any more", name)
				}
			}
			w.create("a")
			w.create("b")
			if !poll.Until(has(map[string]int{"a": 1, "b": 1})) {
				t.Fatalf("the passes read %v, want 1 for each object", read)
			}
			more("a", 3)
			w.drain(a)

			begun := a.begun.Load()
			more("a", 3)
			more("b", 3)
			if now := a.begun.Load(); now != begun {
				t.Errorf("polls that returned the same caused %d calls", now-begun)
			}

			changes := 0
			prompt(t, "the call for a change", period, func() time.Duration { // trigger.TestPollPeriod has the exact period
				changes++
				<-time.After(period / 3) // the last fetch was just now
				changed := time.Now()
				s.set("b", 1+changes)
				c := w.next(a)
				if c.Name != "b" {
					t.Errorf("woken: %s, want b", c.Name)
				}
				if !has(map[string]int{"a": 1, "b": 1 + changes})() {
					t.Errorf("the passes read %v", read)
				}
				return c.At.Sub(changed)
			})
			more("b", 3)
			if now := a.begun.Load() - begun; now != int64(changes) {
				t.Errorf("%d calls for %d changes", now, changes)
			}
			if global {
				return // nothing is polled for an object
			}
			w.delete()
			w.gone()
			after := s.fetched("a")
			for range 20 { // until the process knows
				after = s.fetched("a")
				if more("b", 3); s.fetched("a") == after {
					break
				}
			}
			more("b", 3)
			if now := s.fetched("a"); now != after {
				t.Errorf("the value of a deleted object was fetched %d times more", now-after)
			}
		})
	}
}

// TestPollFails: a service that cannot be reached leaves the last value, and the object is woken to report it.
func TestPollFails(t *testing.T) {
	t.Parallel()
	s := &service{values: map[string]int{"a": 1}, fetches: map[string]int{}}
	p := &trigger.Poll[*probe.Probe, int]{Every: 50 * time.Millisecond, Fetch: s.one}
	type seen struct {
		value int
		ok    bool
		err   error
	}
	passes := make(chan seen, 100)
	a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
		value, ok := p.Get(r.Obj)
		passes <- seen{value, ok, p.Err(r.Obj)}
		return loop.Done()
	})
	w := newControllerTest(t, a, options{Sources: []trigger.Source[*probe.Probe]{p}})
	w.create("a")
	for now := range passes {
		if now.ok {
			break
		}
	}
	away := errors.New("no route to host")
	s.goAway(away)
	for now := range passes { // the failure causes one
		if now.value != 1 || !now.ok {
			t.Errorf("while the service is away, a pass reads %+v; want the last value, 1", now)
		}
		if errors.Is(now.err, away) {
			break
		}
	}
	before := s.fetched("a")
	if !poll.Until(func() bool { return s.fetched("a") > before }) {
		t.Fatal("a fetch that failed is not repeated")
	}
	s.set("a", 5)
	s.goAway(nil)
	for now := range passes {
		if now.value == 5 && now.err == nil {
			break
		}
	}
}

// TestCron: objects have schedules, and one of them is invalid.
func TestCron(t *testing.T) {
	t.Parallel()
	c := &trigger.Cron[*probe.Probe]{Of: func(p *probe.Probe) string { return p.Spec.Needs }}
	a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
		if err := c.Err(r.Obj); err != nil {
			return loop.Terminal("InvalidSchedule", err)
		}
		return loop.Done()
	})
	w := newControllerTest(t, a, options{Sources: []trigger.Source[*probe.Probe]{c}})
	w.create("wrong", func(p *probe.Probe) { p.Spec.Needs = "every day" })
	told := w.await("wrong", "to be Stalled", func(p *probe.Probe) bool { return condition(p, "Stalled") != nil })
	if m := condition(told, "Stalled").Message; !strings.Contains(m, `schedule "every day"`) {
		t.Errorf("message %q does not say what is wrong", m)
	}
	w.next(a)
	w.create("never")
	w.next(a)
	w.create("often", func(p *probe.Probe) { p.Spec.Needs = "@every 1s" })
	for range 3 {
		if got := w.next(a); got.Name != "often" {
			t.Errorf("woken: %s, want often", got.Name)
		}
	}
}
