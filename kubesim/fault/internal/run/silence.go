package run

import (
	"slices"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// UsualQuiet is how long nothing may change for a cluster to be called quiet, unless its scenario says
// otherwise.
const UsualQuiet = 30 * time.Second

// silenceFor is how long a cluster at rest is watched.
func (p *play) silenceFor() time.Duration {
	if p.scenario.Manager.LeaderElection {
		return time.Minute // a lease is renewed every two seconds
	}
	return 15 * time.Minute
}

// silence watches what should be silent, after the last step.
func (p *play) silence() error {
	if p.job.Watchful {
		return nil // it was watched after each step
	}
	if err := p.calm(); err != nil {
		return err
	}
	s := p.openSilence()
	if err := p.pass(p.silenceFor()); err != nil {
		return err
	}
	p.closeSilence(s)
	return nil
}

// calm waits until the cluster has been quiet for the usual time, where its steps follow each other
// sooner: client-go retries an event that was not written after ten seconds and more.
func (p *play) calm() error {
	if p.quiet >= UsualQuiet {
		return nil
	}
	l := p.loop
	l.quiet = UsualQuiet
	return l.settle()
}

// watch watches the cluster at rest, before and after the operator starts again with empty caches.
func (p *play) watch() error {
	s := p.openSilence()
	if err := p.age(p.silenceFor()); err != nil {
		return err
	}
	rest := p.box.State()
	if err := p.fleet.stop(); err != nil {
		return err
	}
	s.Restarted = len(p.record.Run.Processes)
	if err := p.startAll(); err != nil {
		return err
	}
	if err := p.pass(p.silenceFor()); err != nil {
		return err
	}
	p.record.Run.Steps[p.step].Woken = state.Aging(rest, p.box.State(), 0)
	p.closeSilence(s)
	return nil
}

// age lets things happen for a span of the simulated clock, and notes what becomes of the cluster in that time.
func (p *play) age(d time.Duration) error {
	h := &p.record.Run.Steps[p.step]
	began := time.Now()
	for end := began.Add(d); time.Now().Before(end); {
		seen := p.box.LastChange
		err := p.until(func() time.Duration {
			if p.box.LastChange.After(seen) && len(h.Aged) < mostAged {
				return 0
			}
			return time.Until(end)
		})
		if err != nil {
			return err
		}
		for _, a := range state.Aging(h.State, p.box.State(), time.Since(began)) {
			if !slices.ContainsFunc(h.Aged, func(o history.Aged) bool { return o.Key == a.Key && o.Sheet == a.Sheet && o.Gone == a.Gone }) {
				h.Aged = append(h.Aged, a)
			}
		}
	}
	return nil
}

// mostAged bounds what is noted of a cluster that changes all the time.
const mostAged = 100

func (p *play) openSilence() *history.Silence {
	return &history.Silence{
		Call: len(p.record.Run.Calls), From: time.Now(), Restarted: p.reminded, ReadsAllowed: -1,
	}
}

func (p *play) closeSilence(s *history.Silence) {
	run := p.record.Run
	s.To, s.LastCall = time.Now(), len(run.Calls)
	if hours := s.To.Sub(s.From).Hours(); p.scenario.Reads > 0 {
		s.ReadsAllowed = int(float64(p.scenario.Reads)*hours) + 1
	}
	run.Silence = s
	run.Silences = append(run.Silences, *s)
}
