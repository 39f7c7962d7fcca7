package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/judge"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// newExploration checks a scenario and prepares to play it.
func newExploration(t *testing.T, s *Scenario, o options) (*exploration, error) {
	t.Helper()
	switch {
	case s.Name == "":
		return nil, errors.New("fault: the scenario has no name; reports and replays need one")
	case s.Operator.SetUp == nil:
		return nil, fmt.Errorf("fault: scenario %q has no operator; give its Operator a SetUp", s.Name)
	case o.pairs < 0:
		return nil, fmt.Errorf("fault: scenario %q: %w", s.Name, sandbox.MisuseError(fmt.Sprintf("Sample(%d) would play no pairs; give a number above 0, or 0 for %d of them", o.pairs, SampledPairs)))
	}
	if o.budget < 0 {
		return nil, fmt.Errorf("fault: scenario %q: %w", s.Name, sandbox.MisuseError(fmt.Sprintf("Budget(%v) is no time; give one above 0, or 0 for the time until the test's deadline", o.budget)))
	}
	if err := o.checkWaivers(); err != nil {
		return nil, fmt.Errorf("fault: scenario %q: %w", s.Name, err)
	}
	if err := cmp.Or(s.checkSteps(), s.checkBefore()); err != nil {
		return nil, fmt.Errorf("fault: scenario %q: %w", s.Name, err)
	}
	c, err := s.cluster()
	if err != nil {
		return nil, err
	}
	e := &exploration{
		t: t, scenario: s, options: o, roles: c.Roles, teller: newTeller(s.Name),
		judge: &judge.Judge{Scenario: s.Name, Test: t.Name(), Whole: *callsFlag, Waived: o.waivedIDs()},
	}
	e.converted = convertByTypes(c.CRDs, c.Scheme)
	if e.simulation, err = run.New(s.compiled(), c); err != nil {
		return nil, err
	}
	e.simulation.State.Lists = state.ListsOf(c.CRDs)
	e.simulation.State.Foreign = slices.Concat(s.Foreign, s.Operator.Ignored)
	w, err := e.simulation.Hire()
	if err != nil {
		return nil, err
	}
	e.mapper = w.Mapper()
	e.simulation.Dismiss(w)
	return e, nil
}

// cluster reads what a simulated cluster has from the beginning.
func (s *Scenario) cluster() (c run.Cluster, err error) {
	c = run.Cluster{Scheme: runtime.NewScheme(), Lag: s.Lag}
	if err := clientscheme.AddToScheme(c.Scheme); err != nil {
		return c, err
	}
	if s.Operator.AddToScheme != nil {
		if err := s.Operator.AddToScheme(c.Scheme); err != nil {
			return c, fmt.Errorf("fault: scenario %q: AddToScheme: %w", s.Name, err)
		}
	}
	if c.CRDs, err = apiserver.ReadCRDs(s.Operator.CRDs); err != nil {
		return c, fmt.Errorf("fault: scenario %q: CRDs: %w", s.Name, err)
	}
	if s.Operator.RBAC != nil {
		roles, err := apiserver.ReadRoles(s.Operator.RBAC)
		if err != nil {
			return c, fmt.Errorf("fault: scenario %q: RBAC: %w", s.Name, err)
		}
		roles.Justify(s.Operator.Justified...)
		c.Roles = roles.OnlyBound()
	}
	if c.Webhooks, err = apiserver.ReadWebhooks(s.Operator.Webhooks, s.Operator.CRDs, s.Operator.RBAC); err != nil {
		return c, fmt.Errorf("fault: scenario %q: %w", s.Name, err)
	}
	if c.Actors, err = s.actors(); err != nil {
		return c, err
	}
	if s.ExternalAPI != nil {
		c.External = func() *sandbox.External { return newFake(s.ExternalAPI()) }
	}
	return c, nil
}

// compiled is what is played of a scenario, with its defaults.
func (s *Scenario) compiled() *run.Scenario {
	c := &run.Scenario{
		Name: s.Name, Manager: s.Operator.Manager, Replicas: s.Replicas, Reads: s.Reads, Shared: s.Shared, Secrets: s.Secrets,
		SetUp:    func(mgr manager.Manager, p *run.Process) error { return s.Operator.SetUp(mgr, &Env{p}) },
		Quiet:    cmp.Or(s.Quiet, run.UsualQuiet),
		Patience: cmp.Or(s.Patience, 30*time.Minute),
	}
	c.Before, c.Steps = compiledSteps(s.Before), compiledSteps(s.Steps)
	for _, race := range s.raceSteps() {
		c.Races = append(c.Races, race.disturbing())
	}
	return c
}

func compiledSteps(steps []Step) (compiled []run.Step) {
	for _, step := range steps {
		compiled = append(compiled, run.Step{Name: step.Name, Do: inSandbox(step.Do), Expect: inSandbox(step.Expect), Wait: step.Wait, By: step.actor()})
	}
	return compiled
}

// checkSteps refuses steps that cannot be played.
func (s *Scenario) checkSteps() error {
	for _, step := range slices.Concat(s.Before, s.Steps, s.Races) {
		if step.wrong != nil {
			return step.wrong
		}
	}
	return nil
}

// checkBefore refuses what has no meaning before the operator runs.
func (s *Scenario) checkBefore() error {
	for _, step := range s.Before {
		if step.Do == nil || step.Expect != nil || step.Wait != 0 {
			return sandbox.MisuseError(fmt.Sprintf("Before has %q, which waits or expects something; nothing happens before the operator starts, so put it into Steps", step.Name))
		}
	}
	return nil
}

// disturbing is the step as something that users do besides.
func (s Step) disturbing() disturb.Step {
	d := disturb.Step{Name: s.Name, Do: inSandbox(s.Do), Object: s.object}
	if s.again != nil {
		again := s.again.disturbing()
		d.Again = &again
	}
	return d
}

// inSandbox is what an author's function does in a sandbox; nil stays nil.
func inSandbox(f func(context.Context, *World) error) func(context.Context, *sandbox.World) error {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, w *sandbox.World) error {
		return f(ctx, &World{Client: w.Client, ExternalAPI: apiOf(w.External)})
	}
}
