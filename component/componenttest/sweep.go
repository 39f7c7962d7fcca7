package componenttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/node"
	"github.com/trimtab-dev/trimtab/testenv"
)

// Sweep is a story for [CrashSweep]: a component is created, updated, and deleted. All fields are required
// unless they say otherwise.
type Sweep[T component.Object] struct {
	// Config is a configuration for an API server that serves the component's kind.
	Config *rest.Config
	// AddToScheme registers the component's kind.
	AddToScheme func(*runtime.Scheme) error
	// Renderer and Options are the operator's. A HandoverGrace of zero means none here, so that nobody
	// waits. Functions of charts that return something else each time return fixed texts, so that runs can be compared.
	Renderer component.Renderer[T]
	Options  component.Options[T]
	// Versions are the component as it is created and then updated, each time when it is ready as the
	// version before asks. At last it is deleted. Namespaces are ignored: each run has its own.
	Versions []T
	// Prepare is called for the new namespace of a run before the component is created: it makes what
	// the component needs, and may start [Play]. Nil does nothing.
	Prepare func(t testing.TB, c client.WithWatch, namespace string)
	// Then is called when a version is ready and before the next one is brought, or the component is deleted: it does
	// what others do meanwhile, and waits until the operator has dealt with it. version counts from zero. Nil does
	// nothing.
	Then func(t testing.TB, c client.WithWatch, namespace string, version int)
	// Every is n if only each n-th kill of [CrashSweep] is to be played, for example under the race detector. Zero
	// means all.
	Every int
	// Drivers makes the drivers of a process: with it goes what its drivers remember. They call
	// [Process.Call]. Nil means those of Options.
	Drivers func(p *Process) []node.Driver
	// External returns the external resources of a run, by name with their contents. They must be those
	// of the undisturbed run at the end of each version, and none after the deletion. Nil means that there
	// are none.
	External func(namespace string) map[string]string
}

// CrashSweep plays a story once undisturbed, and then once for each write of the operator and each of
// "before" and "after", or for a part of these if Sweep.Every says so: there the operator loses its connection as if it were killed, and is started again.
//
// At each kill, each live object that carries the component's label must be in its inventory. In the end of
// each version the objects and their contents must be those of the undisturbed run, and so must be which of
// them are still the same ones, by UID. After the deletion none is left, and no ConfigMap with an inventory.
//
// The runs are subtests and run in parallel. It is an error if a run makes so few writes that the operator is not
// killed, unless that was to happen at one of the last: in each version and in the deletion, two changes of a status
// may be one write.
func CrashSweep[T component.Object](t *testing.T, s Sweep[T]) {
	t.Helper()
	quiet := s.play(t, cut{})
	t.Logf("undisturbed: %d writes", len(quiet.writes))
	var missed missedKills
	t.Cleanup(func() { // after the subtests
		if err := missed.problem(len(quiet.writes), max(len(s.Versions)+1, len(quiet.writes)/8)); err != nil {
			t.Error(err)
		}
	})
	for write := 1; write <= len(quiet.writes); write++ {
		for i, after := range []bool{false, true} {
			if (2*write+i)%max(s.Every, 1) != 0 {
				continue
			}
			when := "before"
			if after {
				when = "after"
			}
			t.Run(fmt.Sprintf("killed %s write %d", when, write), func(t *testing.T) {
				t.Parallel()
				got := s.play(t, cut{write: write, after: after})
				if len(got.writes) < write {
					t.Logf("not killed: the operator made %d writes this time", len(got.writes))
					missed.add(write)
				}
				got.compare(t, quiet)
			})
		}
	}
}

// missedKills are the writes of a sweep that a run did not come to, so that the operator was not killed there.
type missedKills struct {
	mu     sync.Mutex
	writes []int
}

func (m *missedKills) add(write int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes = append(m.writes, write)
}

// problem is an error if the operator was not killed at a write that each run makes. How many fewer than the undisturbed
// one a run can make depends on time.
func (m *missedKills) problem(last, fewer int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.writes)
	if len(m.writes) == 0 || m.writes[0] > last-fewer {
		return nil
	}
	return fmt.Errorf("of %d writes, the operator was not killed at these, because it made fewer: %v; the sweep is not complete", last, m.writes)
}

// KillAtRandom plays a story once undisturbed, and then as many times as runs says with the operator killed
// at a random time. It checks what [CrashSweep] checks.
func KillAtRandom[T component.Object](t *testing.T, s Sweep[T], runs int) {
	t.Helper()
	quiet := s.play(t, cut{})
	for i := range runs {
		t.Run(fmt.Sprintf("run %d", i+1), func(t *testing.T) {
			t.Parallel()
			delay := time.Duration(rand.Int64N(int64(quiet.took)))
			t.Logf("killed after %s", delay)
			s.play(t, cut{delay: delay}).compare(t, quiet)
		})
	}
}

// outcome is what a run of a story came to.
type outcome struct {
	writes []string // of the process that was killed
	stages []stage
	took   time.Duration
}

// compare reports how a run differs from the undisturbed one.
func (o outcome) compare(t *testing.T, quiet outcome) {
	t.Helper()
	if diff := cmp.Diff(quiet.stages, o.stages); diff != "" {
		t.Errorf("the dependents after each version (-undisturbed +killed after %q):\n%s", o.writes, diff)
	}
}

// play plays the story with the operator killed at one point.
func (s Sweep[T]) play(t *testing.T, at cut) outcome {
	t.Helper()
	admin := testenv.Client(t, s.Config, s.AddToScheme)
	r := &run[T]{Sweep: s, t: t, ctx: context.WithoutCancel(t.Context()), admin: admin, namespace: testenv.Namespace(t, s.Config)}
	if s.Prepare != nil {
		s.Prepare(t, admin, r.namespace)
	}
	r.begin()
	began := time.Now()
	first := newLine(at)
	r.supervise(first)
	var out outcome
	for i, version := range s.Versions {
		r.bring(i, version)
		if s.Then != nil {
			s.Then(t, admin, r.namespace, i)
		}
		out.stages = append(out.stages, r.stage())
	}
	r.remove()
	out.took = time.Since(began)
	r.end()
	for name := range r.external() {
		t.Errorf("external resource %s was leaked: its component is gone", name)
	}
	out.writes = first.sent()
	return out
}

// supervise runs the operator on a line and, if that is cut, another one on a line that is not.
func (r *run[T]) supervise(l *line) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.ctx)
	ended := make(chan struct{})
	stop, err := r.start(l)
	if err != nil {
		r.t.Fatal(err)
	}
	if l.at.delay > 0 {
		timer := time.AfterFunc(l.at.delay, l.sever)
		r.t.Cleanup(func() { timer.Stop() })
	}
	go func() {
		defer close(ended)
		select {
		case <-l.broken:
		case <-ctx.Done():
			stop()
			return
		}
		l.pending.Wait()
		r.die()
		stop()
		next, err := r.start(newLine(cut{})) //nolint:contextcheck // a process outlives the context of the test, see run.ctx
		if err != nil {
			r.t.Errorf("start the operator again: %v", err)
			return
		}
		<-ctx.Done()
		next()
	}()
	r.t.Cleanup(func() {
		cancel()
		<-ended
	})
}
