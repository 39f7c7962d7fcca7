package fault

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/internal/actor"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// job is one run that is to be made.
type job struct {
	number   int // in the list it is played from
	schedule schedule
	// from is where to begin; nil is the beginning.
	from *snapshot
	// like is the undisturbed run to hold it against; nil if this is one.
	like *history.Run
	// alike are others whose worlds are as right.
	alike []*history.Run
	// last is the step after which to stop; 0 plays all.
	last int
	// extra follows the last step: racing, when all is quiet.
	extra  *Step
	racing racing
	// keep makes snapshots; watchful keeps silence after each step.
	keep, watchful bool
}

// result is what came of a job.
type result struct {
	play *play
	run  *history.Run
	// err is why the run could not be played to its end: a fault of the scenario if it was
	// undisturbed, a violation otherwise.
	err error
	// leaked tells that goroutines are left, lost that the worker's server is.
	leaked, lost bool
}

// leaks returns the stacks of goroutines that are left.
func (r result) leaks() string { return r.run.Processes[len(r.run.Processes)-1].Leaked }

// worker plays one run at a time.
type worker struct {
	explorer *explorer
	server   *apiserver.Server
	audit    *apiserver.Audit
	decoded  map[string]decoded // objects, by key and bytes: equal runs hold equal ones
}

// play plays a job in a bubble of its own.
func (w *worker) play(t *testing.T, j job) result {
	bubble, results := make(chan string, 1), make(chan result, 1)
	ended, never := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		synctest.Test(t, func(*testing.T) {
			bubble <- ownBubble()
			r := w.live(j)
			results <- r
			if r.leaked {
				<-never // a bubble must not end before its goroutines
			}
		})
	}()
	var r result
	select {
	case r = <-results:
	case <-time.After(w.explorer.patience):
		return result{err: stuck(w.explorer.patience, <-bubble), lost: true}
	}
	if r.leaked {
		r.lost = true // with the server, which belongs to that bubble now
		return r
	}
	<-ended
	if err := w.server.LeaveBubble(); err != nil {
		r.err = err
	}
	return r
}

// live plays a job, within the bubble.
func (w *worker) live(j job) result {
	p := w.newPlay(j)
	r := result{play: p, run: p.run}
	r.err = p.live(j)
	p.dropDelete()
	if err := p.stopAll(); r.err == nil {
		r.err = err
	}
	r.leaked = p.findLeaks()
	p.complete()
	return r
}

func (w *worker) newPlay(j job) *play {
	e := w.explorer
	p := &play{
		explorer: e, scenario: e.scenario, schedule: j.schedule, server: w.server, scheme: e.scheme, rest: e.mapper,
		run: &history.Run{Scenario: e.scenario.Name, Shared: e.scenario.Shared, Secrets: e.scenario.Secrets}, hold: history.Nobody, current: history.Nobody, reminded: history.Nobody,
		wake: make(chan struct{}, 1), lastChange: time.Now(), account: e.account, audit: w.audit, decoded: w.decoded,
	}
	if j.keep {
		p.snapshots = map[point]*snapshot{}
	}
	return p
}

// live plays the scenario from its beginning or from a snapshot.
func (p *play) live(j job) error {
	var err error
	if j.from == nil {
		err = p.begin()
	} else {
		err = p.resume(j)
	}
	if err != nil {
		return err
	}
	steps := append([]Step{{Name: "start"}}, p.scenario.Steps...)
	for last := j.lastStep(len(steps) - 1); p.step <= last; {
		if err := p.playStep(steps[p.step], j); err != nil {
			return err
		}
		p.step++
	}
	if j.extra != nil {
		p.beginStep(*j.extra)
		if err := p.race(*j.extra); err != nil {
			return err
		}
		if err := p.endStep(*j.extra, job{}); err != nil {
			return err
		}
		p.step++
	}
	p.step--
	return p.silence(j)
}

// begin makes a fresh world.
func (p *play) begin() error {
	p.db = store.New()
	if p.scenario.ExternalAPI != nil {
		p.external = p.scenario.ExternalAPI()
	}
	if err := p.checkExternal(); err != nil {
		return err
	}
	if err := apiserver.Populate(p.db); err != nil {
		return err
	}
	if roles := p.explorer.roles; roles != nil {
		if _, err := roles.Install(p.db); err != nil {
			return err
		}
	}
	if err := p.connect(); err != nil {
		return err
	}
	p.observe(history.Nobody)
	return nil
}

// connect makes what acts in the world.
func (p *play) connect() error {
	config := &rest.Config{Host: "http://kubesim", QPS: -1, UserAgent: "kubectl", Transport: &apiserver.Transport{
		Server: p.server, Client: apiserver.Client{DB: p.db},
	}}
	admin, err := client.New(config, client.Options{Scheme: p.scheme, Mapper: p.rest})
	p.admin = client.WithFieldValidation(admin, metav1.FieldValidationStrict) // a step's typing error is told
	p.actors = actor.New(p.server, p.db)
	return err
}

// startAll starts the operator's processes.
func (p *play) startAll() error {
	for i := range max(1, p.scenario.Replicas) {
		if i > 0 { // so that it is always the first that leads
			if err := p.pass(10 * time.Second); err != nil {
				return err
			}
		}
		if err := p.start(); err != nil {
			return err
		}
	}
	return nil
}

// resume goes on where a process was killed in the undisturbed run: all that outlives it is
// as it was then.
func (p *play) resume(j job) error {
	s, like, d := j.from, j.like, j.schedule[0]
	time.Sleep(time.Until(s.at)) //nolint:forbidigo // of the simulated clock
	p.db = s.db.Open()
	if o, ok := s.external.(Cloner); ok {
		p.external = o.Clone()
	}
	p.run.Calls = slices.Clone(like.Calls[:s.calls+1])
	p.run.Passes = slices.Clone(like.Passes[:s.passes])
	p.run.External = slices.Clone(like.External[:s.views])
	p.run.Steps = slices.Clone(like.Steps[:s.steps])
	p.run.Processes = []history.Process{{Started: like.Processes[0].Started, Crashed: true}}
	p.marks = slices.Clone(p.explorer.reference.marks[:s.marks])
	p.step, p.lastChange = s.step, time.Now()
	p.resumed = true
	if err := p.checkCopy(s.things); err != nil {
		return err
	}
	c := &p.run.Calls[s.calls]
	if d.kind == crashBefore {
		c.Code, c.Rev, c.Last, c.Changed = 0, 0, 0, false
	}
	c.Fault, c.Err = d.kind, ErrDead.Error()
	p.noteFault(d, c.Index, c.What)
	return p.connect()
}

// playStep plays one step.
func (p *play) playStep(step Step, j job) error {
	if p.resumed {
		p.resumed = false
		if err := p.start(); err != nil {
			return err
		}
		if err := p.pass(time.Until(j.from.waits)); err != nil {
			return &stepError{p.step, step.Name, err}
		}
		return p.endStep(step, j)
	}
	p.beginStep(step)
	if p.step == 0 {
		if err := p.startAll(); err != nil {
			return err
		}
	}
	if step.Do != nil {
		if err := p.do(userName, step.Do); err != nil {
			return &stepError{p.step, step.Name, err}
		}
	}
	p.waitsUntil = time.Now().Add(step.Wait)
	if err := p.pass(step.Wait); err != nil {
		return &stepError{p.step, step.Name, err}
	}
	return p.endStep(step, j)
}

func (p *play) beginStep(step Step) {
	p.run.Steps = append(p.run.Steps, history.Step{
		Name: step.Name, Call: len(p.run.Calls), Rev: p.db.Revision(), At: time.Now(),
	})
}

// endStep waits until the world is quiet, and in a disturbed run until it is as it would be
// without the disturbance, as long as patience lasts.
func (p *play) endStep(step Step, j job) error {
	if err := p.settle(); err != nil {
		return cmp.Or(p.broken, error(&stepError{p.step, step.Name, err}))
	}
	if j.like != nil {
		if err := p.converge(j.wanted(p.step)); err != nil {
			return &stepError{p.step, step.Name, err}
		}
		if err := p.outlast(); err != nil {
			return &stepError{p.step, step.Name, err}
		}
		if err := p.remind(j.wanted(p.step)); err != nil {
			return &stepError{p.step, step.Name, err}
		}
	}
	h := &p.run.Steps[p.step]
	h.State = p.present()
	h.Settled, h.SettledCall, h.SettledRev = time.Now(), len(p.run.Calls), p.db.Revision()
	if p.broken != nil {
		return p.broken
	}
	if step.Expect != nil && len(p.schedule) == 0 {
		if err := step.Expect(context.Background(), p.world()); err != nil {
			return &stepError{p.step, step.Name, fmt.Errorf("undisturbed, the world came to rest but %w", err)}
		}
	}
	if j.watchful {
		return p.watch()
	}
	return nil
}

// stepError is a step that failed.
type stepError struct {
	number int
	name   string
	err    error
}

func (e *stepError) Error() string { return fmt.Sprintf("step %d, %q: %v", e.number, e.name, e.err) }
func (e *stepError) Unwrap() error { return e.err }

// converge waits until the world is as one of those wanted.
func (p *play) converge(wanted []history.State) error {
	end := time.Now().Add(p.scenario.patience())
	for !slices.ContainsFunc(wanted, func(w history.State) bool { return sameState(p.present(), w) }) && time.Now().Before(end) {
		seen := p.lastChange
		err := p.until(func() time.Duration {
			if p.lastChange.After(seen) {
				return 0
			}
			return time.Until(end)
		})
		if err != nil {
			return err
		}
		if err := p.settle(); err != nil {
			return err
		}
	}
	return nil
}

// silenceFor is how long a world at rest is watched.
func (p *play) silenceFor() time.Duration {
	if p.scenario.Operator.Manager.LeaderElection {
		return time.Minute // a lease is renewed every two seconds
	}
	return 15 * time.Minute
}

// silence watches what should be silent, after the last step.
func (p *play) silence(j job) error {
	if j.watchful {
		return nil // it was watched after each step
	}
	s := p.openSilence()
	if err := p.pass(p.silenceFor()); err != nil {
		return err
	}
	p.closeSilence(s)
	return nil
}

// watch watches the world at rest, before and after the operator starts anew with empty caches.
func (p *play) watch() error {
	s := p.openSilence()
	if err := p.pass(p.silenceFor()); err != nil {
		return err
	}
	if err := p.stopAll(); err != nil {
		return err
	}
	s.Restarted = len(p.run.Processes)
	if err := p.startAll(); err != nil {
		return err
	}
	if err := p.pass(p.silenceFor()); err != nil {
		return err
	}
	p.closeSilence(s)
	return nil
}

func (p *play) openSilence() *history.Silence {
	return &history.Silence{
		Call: len(p.run.Calls), Rev: p.db.Revision(), From: time.Now(), Restarted: p.reminded, ReadsAllowed: -1,
	}
}

func (p *play) closeSilence(s *history.Silence) {
	s.To, s.LastCall = time.Now(), len(p.run.Calls)
	if hours := s.To.Sub(s.From).Hours(); p.scenario.Reads > 0 {
		s.ReadsAllowed = int(float64(p.scenario.Reads)*hours) + 1
	}
	p.run.Silence = s
	p.run.Silences = append(p.run.Silences, *s)
}
