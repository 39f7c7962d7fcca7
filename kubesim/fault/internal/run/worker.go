package run

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Simulation plays one scenario, many times.
type Simulation struct {
	// Hung is after how long of real time a run is given up in which nothing happens.
	Hung time.Duration
	// State says what else to leave out of comparisons. It must not change while runs are played.
	State state.Options

	scenario *Scenario
	cluster  Cluster
	account  user.Info
	audit    apiserver.Audit

	mu     sync.Mutex
	server *apiserver.Server // knows the CRDs; no run uses it
	free   []*Worker
}

// Cluster is what a simulated cluster has from the beginning.
type Cluster struct {
	Scheme *kruntime.Scheme
	CRDs   []*apiextensionsv1.CustomResourceDefinition
	Roles  *apiserver.Roles // nil: the operator is an administrator
	// External makes the external API; nil if there is none. Lag is how long its reads may be behind.
	External func() *sandbox.External
	Lag      time.Duration
	// Actors are controllers that are not under test.
	Actors []sandbox.Actor
	// Webhooks are configurations.
	Webhooks []kruntime.Object
}

// New prepares to play a scenario.
func New(s *Scenario, c Cluster) (*Simulation, error) {
	e := &Simulation{Hung: time.Minute, scenario: s, cluster: c}
	if c.Roles == nil {
		return e, nil
	}
	db := store.New()
	if err := apiserver.Populate(db); err != nil {
		return nil, err
	}
	var err error
	e.account, err = c.Roles.Install(db)
	return e, err
}

// Uses are the rights that the operator asked for in all runs so far.
func (s *Simulation) Uses() []apiserver.Use { return s.audit.Uses() }

// Worker plays one run at a time.
type Worker struct {
	simulation *Simulation
	settings   sandbox.Settings
	acts       atomic.Int64 // how much has happened in all runs
}

// Hire returns a worker whom nobody else has: one who is free, or else a new one.
func (s *Simulation) Hire() (*Worker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		w := s.free[n-1]
		s.free = s.free[:n-1]
		return w, nil
	}
	return s.newWorker()
}

// Dismiss lets others have a worker.
func (s *Simulation) Dismiss(w *Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, w)
}

// newWorker starts a server for runs. The caller holds the lock.
func (s *Simulation) newWorker() (*Worker, error) {
	if s.server == nil {
		first, err := apiserver.New(s.cluster.CRDs)
		if err != nil {
			return nil, err
		}
		s.server = first
	}
	server, c := s.server.Another(), s.cluster
	webhooks, err := server.EncodeWebhooks(c.Webhooks)
	if err != nil {
		return nil, err
	}
	return &Worker{simulation: s, settings: sandbox.Settings{
		Server: server, Scheme: c.Scheme, Mapper: server.Mapper(), Roles: c.Roles, Webhooks: webhooks,
		Make: c.External, Lag: c.Lag, Actors: c.Actors, Memory: sandbox.NewMemory(),
	}}, nil
}

// Mapper knows the kinds that the server has from the beginning.
func (w *Worker) Mapper() meta.RESTMapper { return w.settings.Mapper }

// Play plays a job in a bubble of its own.
func (w *Worker) Play(t *testing.T, j Job) Result {
	bubble, results := make(chan string, 1), make(chan Result, 1)
	ended, never := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		synctest.Test(t, func(*testing.T) {
			bubble <- ownBubble()
			r := w.live(j)
			results <- r
			if r.stays {
				<-never // a bubble must not end before its goroutines; its clock stands still from now on
			}
		})
	}()
	r, ok := await(results, w.simulation.Hung, w.acts.Load)
	if !ok {
		return Result{Err: stuck(w.simulation.Hung, <-bubble), Lost: true}
	}
	if r.Lost { // the server belongs to that bubble now
		return r
	}
	if !r.stays {
		<-ended
	}
	if err := w.settings.Server.LeaveBubble(); err != nil {
		r.Err = err
	}
	return r
}

// await returns the result of a run, unless nothing happens in it for a time, by a count of what does. A busy machine may
// take long for it.
func await[R any](results <-chan R, hung time.Duration, acts func() int64) (result R, ok bool) {
	for before := acts(); ; {
		select {
		case result = <-results:
			return result, true
		case <-time.After(hung):
			now := acts()
			if now == before {
				return result, false
			}
			before = now
		}
	}
}

// live plays a job, within the bubble.
func (w *Worker) live(j Job) Result {
	settings := w.settings
	settings.State = w.simulation.State
	p := w.newPlay(j)
	r := Result{Run: p.record.Run}
	r.Err = p.live(settings)
	p.others.Drop()
	if err := p.fleet.stop(); r.Err == nil {
		r.Err = err
	}
	settings.Server.CallWebhooks(nil)
	r.stays, r.Leaked, r.Lost = findLeaks(r.Run)
	if p.box != nil {
		p.box.Complete()
		p.learned.External = p.box.External()
	}
	p.learned.Chances = p.queue.Chances()
	r.Void, r.Learned = p.others.Void || p.events.missed, *p.learned
	return r
}

// PlayUntil plays jobs on so many workers, 0 for one per processor, and hands each result on, one at a time. It begins no job
// when all is over, and returns how many were played, the first ones.
func (s *Simulation) PlayUntil(t *testing.T, workers int, jobs []Job, over func() bool, done func(Job, Result)) (int, error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	for i := range jobs {
		jobs[i].Number = i
	}
	c := &crew{simulation: s, jobs: jobs, over: over, done: done}
	var group sync.WaitGroup
	for range min(workers, len(jobs)) {
		group.Go(func() { c.work(t) })
	}
	group.Wait()
	return c.next, c.failure
}
