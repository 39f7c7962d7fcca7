package fault

import (
	"context"
	"flag"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/invariant"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

//arch:state a command line flag, which is one per process
var replayFlag = flag.String("fault.replay", "", "play only the schedule with this token, from a report")

//arch:state a command line flag, which is one per process
var callsFlag = flag.Bool("fault.calls", false, "show all calls: of the undisturbed run, or with -fault.replay of that schedule")

//arch:state a command line flag, which is one per process
var listFlag = flag.Bool("fault.list", false, "list the tokens of all schedules in the test's log (-v), and play none of them")

// Run explores a scenario and fails the test for each way in which an invariant was broken.
// With -fault.replay it plays only that schedule. With -fault.calls the log has all calls of the run.
// With -fault.list it has the tokens of all schedules, of which none is played.
func Run(t *testing.T, s Scenario, opts ...Option) Report {
	t.Helper()
	r := Explore(t, s, opts...)
	t.Log(r)
	for _, text := range r.texts() {
		t.Error(text)
	}
	return r
}

// Suite runs the scenarios of one operator, each as a subtest, and compares the operator's roles with the
// requests in all of them. A permission that no scenario uses breaks invariant I15, unless it is in
// Operator.Justified or in a role's annotation "kubesim.trimtab.dev/justified".
func Suite(t *testing.T, scenarios []Scenario, opts ...Option) []Report {
	t.Helper()
	var reports []Report
	var accesses []*history.Access
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	for i, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			r := Run(t, s, append(slices.Clone(opts), func(o *options) { o.later = len(scenarios) - i - 1 })...)
			reports = append(reports, r)
			if r.access != nil {
				accesses = append(accesses, r.access)
			}
		})
	}
	if scenario, _, err := schedule.Parse(*replayFlag); *replayFlag != "" && err == nil &&
		!slices.ContainsFunc(scenarios, func(s Scenario) bool { return s.Name == scenario }) {
		t.Errorf("replay token %s is of scenario %q, which is none of this suite", *replayFlag, scenario)
	}
	unplayed := func(r Report) bool { return r.Unplayed > 0 }
	if len(reports) < len(scenarios) || *replayFlag+*resumeFlag != "" || slices.ContainsFunc(reports, unplayed) {
		return reports // what was not played may need what seems to be needless
	}
	for _, v := range invariant.Closure(accesses) {
		if !slices.Contains(o.waivedIDs(), v.Invariant) {
			t.Errorf("%s, %s: %s\n%s", v.Invariant, v.Title, v.Message, v.Detail)
		}
	}
	return reports
}

// Explore is like [Run], but findings do not fail the test. A scenario that cannot be explored does: it
// does not come to rest, two undisturbed runs differ, or a step is wrong. So does SIGINT or SIGTERM, which ends it early:
// what was found until then is in the report.
func Explore(t *testing.T, s Scenario, opts ...Option) Report {
	t.Helper()
	o := options{scenario: s.Name}
	for _, opt := range opts {
		opt(&o)
	}
	e, err := newExploration(t, &s, o)
	if err != nil {
		t.Fatal(err)
	}
	defer quieten()()
	report, err := e.explore()
	if err != nil {
		for _, text := range report.texts() {
			t.Log("found before:\n" + text)
		}
		t.Fatalf("scenario %q: %v", s.Name, err)
	}
	if name := stopped.Load(); name != nil && report.Unplayed > 0 { // a test that passes may be taken for one that played all
		t.Errorf("scenario %q: %s stopped it before all was played", s.Name, *name)
	}
	return report
}

// quieten keeps libraries silent and simulated clocks unharmed: an error that is handled in
// a bubble would be delayed by decades, because the last one was in the real present. It
// returns what undoes that.
func quieten() (undo func()) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) {}}
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	collect := debug.SetGCPercent(mostPercent) // and less later, see [collectRarely]
	return func() {
		utilruntime.ErrorHandlers = handlers
		klog.ClearLogger()
		debug.SetGCPercent(collect)
	}
}
