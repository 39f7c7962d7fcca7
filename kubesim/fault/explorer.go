package fault

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/invariant"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

//arch:state a command line flag, which is one per process
var replayFlag = flag.String("fault.replay", "", "play only the schedule with this token, from a report")

// explorer explores one scenario.
type explorer struct {
	scenario *Scenario
	options  options
	log      logr.Logger
	patience time.Duration // of real time, for one run
	scheme   *kruntime.Scheme
	crds     []*apiextensionsv1.CustomResourceDefinition
	mapper   meta.RESTMapper
	roles    *apiserver.Roles
	account  user.Info
	audit    apiserver.Audit

	masked    []state.Field   // in which undisturbed runs differ
	reference *play           // the undisturbed run
	test      string          // its name
	quietUses []apiserver.Use // of rights, in it
	raced     map[int]bool    // the races that changed something; nil if none were played

	mu     sync.Mutex
	judges map[*history.Run]func(*history.Run) []history.Violation // by what they hold runs against
}

func newExplorer(s *Scenario, o options) (*explorer, error) {
	switch {
	case s.Name == "":
		return nil, errors.New("fault: the scenario has no name; reports and replays need one")
	case s.Operator.SetUp == nil:
		return nil, fmt.Errorf("fault: scenario %q has no operator", s.Name)
	case o.pairs < 0:
		return nil, fmt.Errorf("fault: scenario %q: %w", s.Name, misuse(fmt.Sprintf("Sample(%d) would play no pairs; give a number above 0, or 0 for %d of them", o.pairs, SampledPairs)))
	}
	e := &explorer{scenario: s, options: o, log: logr.Discard(), patience: time.Minute, scheme: kruntime.NewScheme()}
	if err := clientscheme.AddToScheme(e.scheme); err != nil {
		return nil, err
	}
	if s.Operator.AddToScheme != nil {
		if err := s.Operator.AddToScheme(e.scheme); err != nil {
			return nil, fmt.Errorf("fault: scenario %q: AddToScheme: %w", s.Name, err)
		}
	}
	var err error
	if e.crds, err = apiserver.ReadCRDs(s.Operator.CRDs); err != nil {
		return nil, fmt.Errorf("fault: scenario %q: CRDs: %w", s.Name, err)
	}
	if s.Operator.RBAC != nil {
		if err := e.readRoles(); err != nil {
			return nil, fmt.Errorf("fault: scenario %q: RBAC: %w", s.Name, err)
		}
	}
	w, err := e.newWorker()
	if err != nil {
		return nil, err
	}
	e.mapper = w.server.Mapper()
	return e, nil
}

func (e *explorer) readRoles() (err error) {
	roles, err := apiserver.ReadRoles(e.scenario.Operator.RBAC)
	if err != nil {
		return err
	}
	roles.Justify(e.scenario.Operator.Justified...)
	e.roles = roles.OnlyBound()
	db := store.New()
	if err := apiserver.Populate(db); err != nil {
		return err
	}
	e.account, err = e.roles.Install(db)
	return err
}

func (e *explorer) newWorker() (*worker, error) {
	server, err := apiserver.New(e.crds)
	if err != nil {
		return nil, err
	}
	return &worker{explorer: e, server: server, audit: &e.audit, decoded: map[string]decoded{}}, nil
}

// quieten keeps libraries silent and simulated clocks unharmed: an error that is handled in
// a bubble would be delayed by decades, because the last one was in the real present. It
// returns what undoes that.
func (e *explorer) quieten() (undo func()) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) {}}
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	collect := debug.SetGCPercent(400) // runs are short and leave everything behind
	return func() {
		utilruntime.ErrorHandlers = handlers
		klog.ClearLogger()
		debug.SetGCPercent(collect)
	}
}

// explore plays the undisturbed run, then all schedules.
func (e *explorer) explore(t *testing.T) (Report, error) {
	began := time.Now()
	if token := *replayFlag; token != "" {
		return e.replay(t, token)
	}
	reference, err := e.undisturbed(t)
	if err != nil {
		return Report{}, e.withRefusals(err)
	}
	report := Report{
		Scenario: e.scenario.Name, Schedules: map[Kind]int{}, Pruned: map[Rule]int{},
		Calls: len(reference.run.Calls), Trace: traceOf(reference.run),
	}
	for _, f := range e.masked {
		report.Masked = append(report.Masked, f.String())
	}
	for _, c := range reference.run.Calls {
		if c.Write {
			report.Writes++
		}
	}
	if err := e.judgeUndisturbed(t, &report, reference); err != nil {
		return report, err
	}
	if len(report.Findings) == 0 { // else thousands of schedules would say the same again
		if err := e.exploreAll(t, &report, reference); err != nil {
			return report, err
		}
	}
	e.judgeAccess(&report)
	report.Notes = e.notes(reference.run)
	slices.SortStableFunc(report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(len(a.Token), len(b.Token)), cmp.Compare(a.job.number, b.job.number), cmp.Compare(a.Token, b.Token))
	})
	if err := e.shrinkAll(t, &report); err != nil {
		return report, err
	}
	report.Took = time.Since(began)
	return report, nil
}

// undisturbed plays the scenario twice without any disturbance; both must be the same, but for
// fields of objects that are random: those are left out from then on, and reported.
func (e *explorer) undisturbed(t *testing.T) (result, error) {
	w, err := e.newWorker()
	if err != nil {
		return result{}, err
	}
	for range 2 {
		first, err := e.wholly(t, w, job{keep: true})
		if err != nil {
			return first, err
		}
		second, err := e.wholly(t, w, job{})
		if err != nil {
			return second, err
		}
		if isSame(first.play.external, second.play.external) {
			return first, misuse("ExternalAPI returned the same fake for two worlds; make a new one each time")
		}
		what := firstDifference(first.run, second.run)
		if what == "" {
			if wrong := invariant.WrongOwner(first.run); wrong != "" {
				return first, errors.New(wrong)
			}
			if err := e.checkShared(first.run); err != nil {
				return first, err
			}
			e.reference, e.test, e.quietUses = first.play, t.Name(), e.audit.Uses()
			return first, nil
		}
		before := len(e.masked)
		e.mask(first.run, second.run)
		if len(e.masked) == before {
			return first, fmt.Errorf("the undisturbed run is not the same twice: %s; likely causes: a map's order before writes, time or random numbers from outside the bubble, goroutines that race", what)
		}
	}
	return result{}, errors.New("the undisturbed run differs in other fields each time; take random numbers out of the operator, or name the fields in Foreign")
}

// wholly plays a job that must come to its end.
func (e *explorer) wholly(t *testing.T, w *worker, j job) (result, error) {
	r := w.play(t, j)
	switch {
	case r.err != nil:
		return r, e.unfit(r)
	case r.leaked:
		return r, fmt.Errorf("goroutines are left after the operator ended; end them when the manager's context ends:\n%s", r.leaks())
	}
	return r, nil
}

// mask leaves out the fields in which two undisturbed runs differ.
func (e *explorer) mask(a, b *history.Run) {
	for i := range min(len(a.Steps), len(b.Steps)) {
		for _, f := range state.Mask(a.Steps[i].State, b.Steps[i].State) {
			if !slices.Contains(e.masked, f) {
				e.masked = append(e.masked, f)
			}
		}
	}
}

// unfit says why a scenario cannot be explored.
func (e *explorer) unfit(r result) error {
	if errors.Is(r.err, errRestless) {
		return fmt.Errorf("%w: %s", r.err, busiest(r.run))
	}
	return r.err
}

// busiest says what goes on and on at the end of a run.
func busiest(r *history.Run) string {
	passes := r.Passes[max(0, len(r.Passes)-20):]
	if len(passes) == 0 {
		return "no reconcile ran; look for a goroutine that calls the API in a loop"
	}
	last := passes[len(passes)-1]
	span := last.Begin.Sub(passes[0].Begin)
	text := fmt.Sprintf("controller %s reconciles %s again and again, the last %d times within %v", last.Controller, last.Object, len(passes), span)
	if last.Err != "" {
		text += ", with error: " + last.Err
	}
	for _, c := range slices.Backward(r.Calls) {
		if c.Write {
			return text + "; its last write is " + c.What
		}
	}
	return text
}

// firstDifference says where two runs part, "" if they do not.
func firstDifference(a, b *history.Run) string {
	for i := range max(len(a.Calls), len(b.Calls)) {
		x, y := lineOf(a, i), lineOf(b, i)
		if x != y {
			return fmt.Sprintf("call %d was %s, then %s", i, x, y)
		}
	}
	for i := range a.Steps {
		if !sameState(a.Steps[i].State, b.Steps[i].State) {
			return fmt.Sprintf("after step %q the worlds differ:\n%s", a.Steps[i].Name, state.Diff(a.Steps[i].State, b.Steps[i].State))
		}
	}
	return ""
}

func lineOf(r *history.Run, i int) string {
	if i >= len(r.Calls) {
		return "nothing"
	}
	c := r.Calls[i]
	return fmt.Sprintf("%q (process %d, pass %d, changed %v, error %q)", c.What, c.Process, c.Pass, c.Changed, c.Err)
}

// traceOf is a hash of what an operator did and what came of it.
func traceOf(r *history.Run) string {
	h := sha256.New()
	for i := range r.Calls {
		fmt.Fprintln(h, lineOf(r, i))
	}
	for _, c := range r.Changes {
		if c.Group != "coordination.k8s.io" { // leases are renewed at random times
			fmt.Fprintln(h, c.Resource, c.Namespace, c.Name, c.By)
		}
	}
	for _, v := range r.External {
		fmt.Fprintln(h, v.Resources)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// judgeUndisturbed holds the undisturbed run against the invariants, and plays it once
// more with an eye on silence after each step.
func (e *explorer) judgeUndisturbed(t *testing.T, report *Report, reference result) error {
	e.judge(report, reference, job{})
	w, err := e.newWorker()
	if err != nil {
		return err
	}
	watched := w.play(t, job{watchful: true})
	if watched.err != nil {
		return fmt.Errorf("watched for 15 minutes of silence after each step: %w", e.unfit(watched))
	}
	if watched.leaked {
		return fmt.Errorf("goroutines are left after the operator ended and started again; end them when the manager's context ends:\n%s", watched.leaks())
	}
	e.judgeSilences(report, watched)
	return nil
}

// exploreAll plays all schedules of the kinds asked for.
func (e *explorer) exploreAll(t *testing.T, report *Report, reference result) error {
	p := &plan{scenario: e.scenario, reference: reference, keep: e.options.keep, pruned: report.Pruned}
	var jobs []job
	for _, kind := range e.options.wanted() {
		more, err := e.jobsOf(t, kind, p, report)
		if err != nil {
			return err
		}
		jobs = append(jobs, p.thin(more, e.options.most[kind])...)
	}
	for i := range jobs {
		if jobs[i].like == nil {
			jobs[i].like = reference.run
		}
	}
	return e.playAll(t, jobs, func(j job, r result) {
		if !r.play.void {
			report.Schedules[kindOfAll(j.schedule)]++
		}
		e.noteRace(j, r)
		e.judge(report, r, j)
	})
}

// jobsOf lists the schedules of a kind.
func (e *explorer) jobsOf(t *testing.T, kind Kind, p *plan, report *Report) ([]job, error) {
	switch kind {
	case Crashes:
		return p.crashes(), nil
	case Faults:
		return p.faults(), nil
	case Stale:
		return p.stale(), nil
	case Duplicates:
		return p.duplicates(), nil
	case Races:
		like, err := e.quietRaces(t, report, p.reference)
		return p.races(like), err
	case Panics:
		return e.panicking(t, p)
	case Hangs:
		return p.hangs(), nil
	case Forgeries:
		return p.forged(), nil
	case Overtaken:
		return e.overtaking(t, p.overtakings())
	case Pairs:
		return p.pairs(e.options.pairs), nil
	}
	return nil, nil
}

func (o options) wanted() []Kind {
	if len(o.kinds) > 0 {
		return o.kinds
	}
	return []Kind{Crashes, Faults, Stale, Duplicates, Races, Overtaken, Forgeries, Panics}
}

// quietRaces plays, for each step and race, the run in which the user comes when the step is
// over and all is quiet. What such a run breaks by itself is found too.
func (e *explorer) quietRaces(t *testing.T, to *Report, reference result) (map[racing]*history.Run, error) {
	var jobs []job
	for step := 1; step < len(reference.run.Steps); step++ {
		for n := range e.scenario.raceSteps() {
			jobs = append(jobs, e.quietRace(racing{step, n}, reference.run))
		}
	}
	like := map[racing]*history.Run{}
	e.raced = map[int]bool{}
	err := e.playAll(t, jobs, func(j job, r result) {
		e.noteRace(j, r)
		e.judge(to, r, job{schedule: j.schedule})
		if r.play.void || r.err != nil {
			return
		}
		run := *r.run
		run.Steps = slices.Clone(run.Steps[:j.last+1])
		run.Steps[j.last].State = r.run.Steps[j.last+1].State
		like[j.racing] = &run
	})
	return like, err
}

// noteRace notes whether the race of a run, if it had one, changed anything.
func (e *explorer) noteRace(j job, r result) {
	for _, d := range j.schedule {
		if n, err := strconv.Atoi(d.arg); err == nil && r.play.raced {
			e.raced[n] = true
		}
	}
}

func (e *explorer) quietRace(r racing, like *history.Run) job {
	return job{
		schedule: schedule{{kind: later, at: r.step, arg: strconv.Itoa(r.race)}},
		like:     like, last: r.step, racing: r, extra: &e.scenario.raceSteps()[r.race],
	}
}
