package fault

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/internal/actor"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Env is one process of the operator in a world: what its calls to the outside go through.
type Env struct {
	process *process
}

// play is one run of a scenario under one schedule, in a bubble of its own.
type play struct {
	explorer *explorer
	scenario *Scenario
	schedule schedule
	server   *apiserver.Server
	scheme   *runtime.Scheme
	rest     meta.RESTMapper
	account  user.Info // nil: administrator
	audit    *apiserver.Audit
	decoded  map[string]decoded

	db       *store.DB
	external ExternalAPI
	earlier  ExternalAPI // before the last write, for reads that lag
	admin    client.Client
	run      *history.Run

	processes  []*process // those that run
	crashed    *process   // killed and not yet replaced
	restarts   int
	later      []time.Time // when to start a process in place of one that died
	resumed    bool        // from a snapshot, in the middle of a step
	step       int
	lastChange time.Time
	waitsUntil time.Time // the end of the present step's Wait
	marks      []mark
	hold       int // the pass whose end events wait for; Nobody for none
	current    int // the pass that began last, if it has not ended; else Nobody
	races      []*unfinished
	deleting   *deletion // that has begun and not ended; nil for none
	reminded   int       // the process that was started to look at everything; Nobody for none
	actors     *actor.Actors

	// What the undisturbed run learns for the schedules that follow it.
	reads      []bool // for each cached read, whether an event could have waited for it
	passes     []bool // for each pass, the same
	couldWait  bool   // for the one that is next
	deliveries int
	points     []visit             // to the author's code, in their order
	caching    bool                // a cache takes in what it was told last
	repeat     *delivery           // comes once more at once
	snapshots  map[point]*snapshot // nil: none are kept

	broken error // what makes the rest of the run pointless
	void   bool  // a race that did nothing: the run says nothing
	raced  bool  // a race that changed something

	unseen []string // controllers with a request type of their own

	wake chan struct{}

	mu       sync.Mutex
	waiting  []*parked
	arrivals int
}

// mark tells who made the revisions after from up to to.
type mark struct {
	from, to int64
	by       string
	call     int
	step     int
}

// Who makes revisions.
const (
	operatorName = "operator"
	userName     = "user"
	foreignName  = "foreign"
)

func (p *play) mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) { return p.rest, nil }

func (p *play) mark(from, to int64, by string, call int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to > from {
		p.marks = append(p.marks, mark{from: from, to: to, by: by, call: call, step: p.step})
	}
}

// act does the one thing that is first, and reports whether there was one.
func (p *play) act() (bool, error) {
	if p.releaseDead() {
		return true, nil
	}
	if d := p.repeat; d != nil {
		p.repeat = nil
		d.process.gate.Repeat(d.Held)
		return true, nil
	}
	k := p.next()
	if k != nil && k.as == parkedCall {
		p.release(k)
		return true, nil
	}
	held := p.held()
	if k != nil && len(held) > 0 {
		p.couldWait = true
	}
	if len(held) > 0 && !p.waits(k) {
		p.deliver(held[0])
		return true, nil
	}
	if k != nil {
		p.look(k)
		return true, nil
	}
	return p.actor()
}

// delivery is an event that may be delivered.
type delivery struct {
	process *process
	store.Held
}

// held lists the events that wait, in the order in which the undisturbed run delivers them.
func (p *play) held() []delivery {
	var all []delivery
	for _, pr := range p.processes {
		for _, h := range pr.gate.Held() {
			all = append(all, delivery{pr, h})
		}
	}
	return all
}

func (p *play) deliver(d delivery) {
	if f, ok := p.schedule.find(p.deliveries, twice); ok {
		p.repeat = &d
		p.noteFault(f, len(p.run.Calls), "event of "+strings.TrimPrefix(d.Change.Key, "/"))
	}
	p.deliveries++
	p.setCaching(true)
	if i := p.current; i != history.Nobody && i < len(p.passes) {
		p.passes[i] = true
	}
	d.process.gate.Deliver(d.Held)
}

func (p *play) setCaching(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.caching = is
}

// waits tells whether events are to wait while k looks at the cache.
func (p *play) waits(k *parked) bool {
	if p.hold != history.Nobody {
		return true
	}
	if k == nil {
		return false
	}
	if k.as == parkedPass {
		_, ok := p.schedule.find(len(p.passes), stalePass)
		return ok
	}
	_, ok := p.schedule.find(len(p.reads), staleRead)
	return ok
}

// look gives a read or a pass its turn.
func (p *play) look(k *parked) {
	switch k.as {
	case parkedRead:
		if f, ok := p.schedule.find(len(p.reads), staleRead); ok {
			p.noteFault(f, len(p.run.Calls), k.what)
		}
		p.reads = append(p.reads, p.couldWait)
	case parkedPass:
		if f, ok := p.schedule.find(len(p.passes), stalePass); ok {
			p.noteFault(f, len(p.run.Calls), "pass of "+k.what)
			p.hold = len(p.passes)
		}
		p.passes = append(p.passes, p.couldWait)
	case parkedCall:
	}
	p.couldWait = false
	p.release(k)
}

// actor lets the cluster's own controllers do one thing.
func (p *play) actor() (bool, error) {
	enabled := p.actors.Enabled()
	if len(enabled) == 0 {
		return false, nil
	}
	before := p.db.Revision()
	if err := enabled[0].Do(context.Background()); err != nil {
		return false, fmt.Errorf("%s: %s: %w", enabled[0].By, enabled[0].What, err)
	}
	p.mark(before, p.db.Revision(), enabled[0].By, history.Nobody)
	p.lastChange = time.Now()
	return true, nil
}

// actsPerStep bounds what may happen until the world is quiet: far more than any operator
// needs that comes to rest.
const actsPerStep = 5000

// settle lets things happen until nothing has changed for a while.
func (p *play) settle() error {
	return p.until(func() time.Duration { return time.Until(p.lastChange.Add(p.scenario.quiet())) })
}

// pass lets things happen for a span of the simulated clock.
func (p *play) pass(d time.Duration) error {
	end := time.Now().Add(d)
	return p.until(func() time.Duration { return time.Until(end) })
}

// until lets things happen while left returns more than zero: that much time may go by if
// nothing happens.
func (p *play) until(left func() time.Duration) error {
	for acts := 0; ; {
		synctest.Wait()
		if err := p.replaceCrashed(); err != nil {
			return err
		}
		if err := p.finishRaces(); err != nil {
			return err
		}
		did, err := p.act()
		switch {
		case err != nil:
			return err
		case did:
			if acts++; acts > actsPerStep {
				return errRestless
			}
			continue
		}
		rest := left()
		if len(p.later) > 0 {
			rest = time.Until(p.later[0])
		} else if rest <= 0 && p.crashed == nil {
			return nil
		}
		p.sleep(rest)
	}
}

// sleep waits until somebody wants something, at most for d.
func (p *play) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.wake:
	case <-timer.C:
	}
}
