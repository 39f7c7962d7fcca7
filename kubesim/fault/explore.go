package fault

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/judge"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/plan"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/report"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/shrink"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// exploration explores one scenario: it plans schedules, has them played and judged, makes those of
// findings shorter, and reports.
type exploration struct {
	t          *testing.T
	scenario   *Scenario
	options    options
	simulation *run.Simulation
	judge      *judge.Judge
	mapper     meta.RESTMapper
	roles      *apiserver.Roles // nil: the operator is an administrator
	clock      clock
	teller     *teller
	told       map[string]bool // the groups of findings that the teller knows

	reference run.Result // the undisturbed run
	unfit     run.Result // the undisturbed run that did not come to its end; none if all did
	plan      *plan.Plan
	racings   []run.Racing                  // see [exploration.allRacings]
	asked     map[run.Racing]bool           // those of them that were played at rest
	quiet     map[run.Racing]*history.Run   // what races are compared with: the runs at rest that came to their end
	renewals  map[run.Racing]*renewal       // by the races that re-create
	early     map[run.Racing]*history.Run   // those in which the user came before the step
	ends      map[run.Racing][]*history.Run // what races may end as, too
	broken    map[run.Racing]bool           // those of them that broke something by themselves
	converted []string                      // CRDs that the operator converts although their manifests do not say so
	report    Report
}

// explore plays the undisturbed run, then all schedules.
func (e *exploration) explore() (Report, error) {
	e.clock = e.newClock()
	defer e.teller.start()()
	defer heedSignals(e.teller.say)()
	if token := *replayFlag; token != "" {
		return e.replay(token)
	}
	if scenario, _, err := resumption(); err != nil || scenario != "" && scenario != e.scenario.Name {
		return e.unplayed("-fault.resume", scenario), err
	}
	if err := e.prepare(); err != nil {
		return Report{}, err
	}
	e.describe()
	e.showCalls(e.reference.Run)
	err := e.judgeUndisturbed()
	if err == nil {
		err = e.playAll()
	}
	if err == nil && !*listFlag {
		err = e.replayAll()
	}
	switch {
	case isOver(err):
		e.stopBefore(err)
	case err != nil:
		return e.report, err
	}
	e.judgeAccess()
	e.note()
	slices.SortStableFunc(e.report.Findings, byWeight)
	e.shrinkAll()
	for rule, n := range e.plan.Pruned {
		e.report.Pruned[Rule(rule)] += n
	}
	e.report.Took = time.Since(e.clock.began)
	return e.report, nil
}

// byWeight orders findings: the worst first, then the shortest.
func byWeight(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(a.found.Rank(), b.found.Rank()), cmp.Compare(len(a.Token), len(b.Token)),
		cmp.Compare(a.found.Job.Number, b.found.Job.Number), cmp.Compare(a.Token, b.Token))
}

// note writes down what is no finding.
func (e *exploration) note() {
	e.report.Notes = append(e.report.Notes, ofConversion(e.converted)...)
	e.report.Notes = append(e.report.Notes, ofPatches(e.scenario.Operator)...)
	e.report.Notes = append(e.report.Notes, (&notes{e.scenario, e.reference}).all()...)
	e.report.Notes = append(e.report.Notes, e.judge.Habits()...)
	for _, w := range e.options.waived {
		if n := e.judge.HowOftenWaived(string(w.invariant)); n > 0 {
			e.report.Notes = append(e.report.Notes, fmt.Sprintf("%s is waived, and broken in %s: %s", w.invariant, plural(n, "run"), w.reason))
		}
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// prepare plays the undisturbed run, by which all else is planned.
func (e *exploration) prepare() error {
	e.report = Report{Scenario: e.scenario.Name, Schedules: map[Kind]int{}, Pruned: map[Rule]int{}}
	e.teller.begin(part{what: "undisturbed runs", all: sameRuns})
	if err := e.playReference(); err != nil {
		return e.withCalls(e.withRefusals(err))
	}
	e.plan = &plan.Plan{
		Reference: e.reference, Replicas: e.scenario.Replicas, Races: len(e.scenario.raceSteps()), Lag: e.scenario.Lag, Seed: e.options.seed,
		Keep: e.options.switchedOff(), Pruned: map[plan.Rule]int{}, Spared: e.spare(), Since: e.since(), Ends: e.raceEnds,
	}
	for _, kind := range e.options.wanted() {
		e.plan.Wanted = append(e.plan.Wanted, schedule.Family(kind))
	}
	return nil
}

// describe reports what the undisturbed run is like.
func (e *exploration) describe() {
	r := e.reference.Run
	e.report.Calls, e.report.Trace = len(r.Calls), traceOf(r)
	for _, s := range e.simulation.State.Random {
		e.report.Notes = append(e.report.Notes, fmt.Sprintf("the operator chooses names at random or by the time: %s %s; they are compared as generated ones are", s.Kind, s.Name))
	}
	for _, f := range e.simulation.State.Masked {
		e.report.Masked = append(e.report.Masked, f.String())
	}
	for _, c := range r.Calls {
		if c.Write {
			e.report.Writes++
		}
	}
}

// showCalls writes all calls of a run to the test's log, if that is asked for.
func (e *exploration) showCalls(r *history.Run) {
	if *callsFlag {
		e.t.Log(report.Calls(r))
	}
}

// playAll plays all schedules of the kinds asked for.
func (e *exploration) playAll() error {
	var jobs []run.Job
	for _, kind := range e.options.wanted() {
		more, err := e.jobsOf(kind)
		if err != nil {
			return err
		}
		jobs = append(jobs, e.plan.Thin(more, e.options.most[kind])...)
	}
	for i := range jobs {
		if jobs[i].Like == nil {
			jobs[i].Like = e.reference.Run
		}
	}
	jobs, err := e.sift(jobs)
	if err != nil {
		return err
	}
	if *listFlag {
		e.list(jobs)
		return nil
	}
	e.teller.begin(part{what: "schedules", all: len(jobs)})
	played, err := e.simulation.PlayUntil(e.t, e.options.workers, jobs, e.over, func(j run.Job, r run.Result) {
		if r.Void {
			e.report.Pruned[TooEarly]++
			e.report.early++
		} else {
			e.report.Schedules[Kind(cmp.Or(j.Family, j.Schedule.Family()))]++
		}
		e.noteRenewal(j, r)
		e.find(j, r)
		collectRarely()
		e.teller.did()
	})
	e.stop(played, len(jobs))
	if err != nil {
		return err
	}
	return e.findAvoidable()
}

// list writes the tokens of schedules to the test's log instead of playing them.
func (e *exploration) list(jobs []run.Job) {
	tokens := make([]string, len(jobs))
	for i, j := range jobs {
		tokens[i] = j.Schedule.Token(e.scenario.Name)
	}
	e.t.Log(plural(len(jobs), "schedule") + ", in the order in which they are played:\n" + strings.Join(tokens, "\n"))
	e.report.Unplayed = len(jobs)
	e.report.Notes = append(e.report.Notes, "with -fault.list, no schedule is played")
}

// unplayed is the report of a scenario that a flag does not name. It may be of another one in the same test.
func (e *exploration) unplayed(flag, scenario string) Report {
	return Report{
		Scenario: e.scenario.Name, Schedules: map[Kind]int{}, Pruned: map[Rule]int{},
		Notes: []string{fmt.Sprintf("%s names scenario %q, so nothing was played", flag, scenario)},
	}
}

// jobsOf lists the schedules of a kind.
func (e *exploration) jobsOf(kind Kind) ([]run.Job, error) {
	p := e.plan
	plans := map[Kind]func() []run.Job{
		Crashes: p.Crashes, Faults: p.Faults, Stale: p.Stale, Duplicates: p.Duplicates, Delays: p.Delaying, Breaks: p.Breaking,
		Hangs: p.Hanging, Forgeries: e.forging, Replacements: p.Replacing, Contention: p.Contending, SlowCalls: p.Slowing,
		Drift: e.drifting, OldCaches: p.Remembering,
	}
	if plan := plans[kind]; plan != nil {
		return plan(), nil
	}
	switch kind {
	case Races:
		return e.racing(p.Racing, e.options.most[kind])
	case Absences:
		return e.racing(p.Absences, e.options.most[kind])
	case Panics:
		return e.panicking()
	case Overtaken:
		return e.overtaking(p.Overtakings())
	case LateEffects:
		return e.timingOut()
	case Recoveries:
		return e.recovering()
	case LateWrites:
		return e.arriving()
	case Freezes:
		return e.freezing()
	case Pairs:
		return p.Pairs(cmp.Or(e.options.pairs, SampledPairs)), nil
	}
	return nil, nil
}

// forging lists the schedules of [Forgeries], and says so if there is no status to forge.
func (e *exploration) forging() []run.Job {
	if len(disturb.Statuses(e.reference.Run)) == 0 {
		e.report.Notes = append(e.report.Notes, nothingToForge)
	}
	return e.plan.Forging()
}

// drifting lists the schedules of [Drift], and says so if there is nothing that it could do.
func (e *exploration) drifting() []run.Job {
	jobs := e.plan.Drifting()
	if len(jobs) == 0 {
		e.report.Notes = append(e.report.Notes, nothingToDrift)
	}
	return jobs
}

// play plays jobs that schedules are planned by, and hands each result on, one at a time. What says what they are.
func (e *exploration) play(what string, jobs []run.Job, done func(run.Job, run.Result)) error {
	if len(jobs) == 0 {
		return nil // and nothing to tell
	}
	e.teller.begin(part{what: what, all: len(jobs)})
	played, err := e.simulation.PlayUntil(e.t, e.options.workers, jobs, e.mustEnd, func(j run.Job, r run.Result) {
		done(j, r)
		collectRarely()
		e.teller.did()
	})
	if err == nil && played < len(jobs) {
		return overAt(e.clock.last)
	}
	return err
}

// find adds what a run broke to the findings, and reports whether it broke anything.
func (e *exploration) find(j run.Job, r run.Result) bool {
	if r.Void {
		return false
	}
	f, ok := e.judge.Find(j, r)
	if ok {
		e.add(f)
	}
	return ok
}

// add adds a finding. The first one in which something is wrong is reported at once, unless it is of the runs that a replay is
// compared with.
func (e *exploration) add(found judge.Finding) {
	f := newFinding(found)
	e.report.Findings = append(e.report.Findings, f)
	if *replayFlag != "" {
		return
	}
	e.teller.count()
	if e.told == nil {
		e.told = map[string]bool{}
	}
	if group := found.Group(); !e.told[group] {
		e.told[group] = true
		e.teller.found(f)
	}
}

func (e *exploration) quietRace(r run.Racing) run.Job {
	race := e.scenario.raceSteps()[r.Race].disturbing()
	return run.Job{
		Schedule: schedule.Schedule{{Kind: schedule.Later, At: r.Step, Arg: strconv.Itoa(r.Race)}},
		Like:     e.reference.Run, Last: r.Step, Racing: r, Extra: &race,
	}
}

// panicking returns the jobs in which the author's code panics, also between an answer to a
// change at the external API that was lost and the next call: what tells errors apart is asked only then.
func (e *exploration) panicking() ([]run.Job, error) {
	jobs := e.plan.Panicking()
	if len(jobs) == 0 {
		return nil, nil
	}
	lost := e.plan.LostAnswers()
	pairs := make([][]run.Job, len(lost)) // in the order of the calls, whichever run ends first
	err := e.play("runs with a lost answer", lost, func(j run.Job, r run.Result) { pairs[j.Number] = plan.PanickingAfter(j, r) })
	return append(jobs, slices.Concat(pairs...)...), err
}

// overtaking returns the jobs that play deletes which were overtaken. Each may end as if the user
// had deleted at either end of it, in the ordinary way: these runs are played first.
func (e *exploration) overtaking(all []plan.Overtaking) ([]run.Job, error) {
	ends := plan.Ends{}
	err := e.play("runs with an ordinary delete", plan.References(all), func(j run.Job, r run.Result) {
		e.relate(r.Run)
		ends.Note(e.reference.Run, j, r)
	})
	return plan.Overtake(all, ends), err
}

// shrinkAll makes the schedule of one finding of each group shorter: those are the ones that are read.
func (e *exploration) shrinkAll() {
	e.teller.begin(part{what: "shorter schedules", all: len(e.told)})
	find := func(j run.Job) (judge.Finding, bool) {
		e.teller.did()
		r, err := e.alone(j)
		if err != nil || r.Run == nil || r.Void {
			return judge.Finding{}, false
		}
		return e.judge.Find(j, r)
	}
	seen := map[string]bool{}
	for i, f := range e.report.Findings {
		if key := f.found.Group(); !seen[key] && len(f.found.Job.Schedule) > 0 {
			seen[key] = true
			e.report.Findings[i] = newFinding(shrink.Shortest(f.found, e.jobFor, find))
		}
	}
}

// judgeAccess compares the operator's roles with what it asked for in all runs.
func (e *exploration) judgeAccess() {
	if e.roles == nil {
		return
	}
	e.report.access = (*history.Access)(e.roles.Access(e.simulation.Uses()))
	if f, ok := e.judge.Access(e.report.access); ok {
		e.add(f)
	}
}
