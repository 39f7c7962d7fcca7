package fault

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/plan"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// prepared returns an exploration that has played the undisturbed run, and a worker for more.
func prepared(t *testing.T, s Scenario) (*exploration, *run.Worker) {
	t.Helper()
	e, err := newExploration(t, &s, options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(quieten())
	if err := e.prepare(); err != nil {
		t.Fatal(err)
	}
	w, err := e.simulation.Hire()
	if err != nil {
		t.Fatal(err)
	}
	return e, w
}

// all are the jobs of the kinds that need no others to be played first.
func all(e *exploration) []run.Job {
	jobs := slices.Concat(e.plan.Crashes(), e.plan.Faults(), e.plan.Stale(), e.plan.Duplicates())
	for i := range jobs {
		jobs[i].Like = e.reference.Run
	}
	return jobs
}

// TestSnapshots proves that a schedule that begins at its crash goes on as one that is played
// from the beginning.
func TestSnapshots(t *testing.T) {
	e, w := prepared(t, toyLife(""))
	e.plan.Keep = []plan.Rule{plan.NoEffect, plan.SameInstant}
	jobs := e.plan.Crashes()
	if len(jobs) < 12 {
		t.Fatalf("%d crashes of a scenario with 8 writes", len(jobs))
	}
	for _, j := range jobs {
		if j.From == nil {
			t.Fatalf("%s has no snapshot to begin from", j.Schedule)
		}
		j.Like = e.reference.Run
		short := w.Play(t, j)
		j.From = nil
		long := w.Play(t, j)
		if diff := cmp.Diff(lines(long), lines(short)); diff != "" {
			t.Errorf("%s: (-from the beginning +from the snapshot)\n%s", j.Schedule, diff)
		}
	}
}

// lines is a run in short, for comparisons.
func lines(r run.Result) (all []string) {
	for i := range r.Run.Calls {
		all = append(all, lineOf(r.Run, i))
	}
	for _, s := range r.Run.Steps {
		all = append(all, s.Name)
		for _, key := range slices.Sorted(maps.Keys(s.State.Objects)) {
			all = append(all, key+s.State.Objects[key])
		}
	}
	return all
}

// TestRepeats plays every schedule again on other workers: equal schedules make equal runs.
func TestRepeats(t *testing.T) {
	e, _ := prepared(t, toyLife(""))
	var jobs []run.Job
	first := all(e)
	for range 3 {
		jobs = append(jobs, first...)
	}
	for range 100 {
		jobs = append(jobs, run.Job{})
	}
	traces := map[string]map[string]bool{}
	err := e.play("run", jobs, func(j run.Job, r run.Result) {
		key := j.Schedule.Token("")
		if traces[key] == nil {
			traces[key] = map[string]bool{}
		}
		traces[key][traceOf(r.Run)] = true
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(traces) != len(first)+1 {
		t.Errorf("%d schedules were played, want %d", len(traces), len(first)+1)
	}
	for token, hashes := range traces {
		if len(hashes) != 1 {
			t.Errorf("%s was played as %d different runs", token, len(hashes))
		}
	}
}

// TestFence proves that a dead process does nothing: an operator that tidies up in deferred
// functions would look right otherwise.
func TestFence(t *testing.T) {
	e, w := prepared(t, toyLife("compensates in a defer"))
	put := slices.IndexFunc(e.reference.Run.Calls, func(c history.Call) bool { return c.What == "put new" })
	next := slices.IndexFunc(e.reference.Run.Calls[put+1:], func(c history.Call) bool { return c.Write }) + put + 1
	r := w.Play(t, run.Job{Schedule: schedule.Schedule{{Kind: schedule.CrashBefore, At: next}}, Like: e.reference.Run})
	if diff := cmp.Diff([]string{"external remove box-1"}, r.Run.Processes[0].Fenced); diff != "" {
		t.Errorf("calls refused after death (-want +got):\n%s", diff)
	}
	_ = e
}

// TestBugs proves that the three ways in which an operator loses or repeats things are found,
// and that one without them is not accused.
func TestBugs(t *testing.T) {
	cases := map[string]struct {
		invariant Invariant
		token     string
	}{
		"":                              {},
		"remembers in the object alone": {invariant: "I3", token: schedule.CrashAfter},
		"finalizer first":               {invariant: "I2", token: schedule.CrashAfter},
	}
	for bug, c := range cases {
		t.Run(bug, func(t *testing.T) {
			r := Explore(t, toyLife(bug))
			t.Logf("%d calls, %d writes, %v, pruned %v, %v", r.Calls, r.Writes, r.Schedules, r.Pruned, r.Took)
			if c.invariant == "" {
				for _, f := range r.Findings {
					t.Error(f.Text)
				}
				return
			}
			if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Violations[0].Invariant == c.invariant }) {
				t.Errorf("no schedule broke %s; findings: %v", c.invariant, r.Findings)
			}
		})
	}
}

// TestMask proves that a random field is reported and not compared.
func TestMask(t *testing.T) {
	r := Explore(t, Scenario{
		Name: "random", Steps: []Step{Create(configMap("a"))}, Races: []Step{},
		Operator: Operator{SetUp: configMaps(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
			if cm.Name != "a" || cm.Data["password"] != "" {
				return nil
			}
			cm.Data = map[string]string{"password": rand.Text()}
			return c.Update(ctx, cm)
		})},
	})
	if diff := cmp.Diff([]string{"configmaps default/a data.password"}, r.Masked); diff != "" {
		t.Errorf("masked fields (-want +got):\n%s", diff)
	}
	for _, f := range r.Findings {
		t.Error(f.Text)
	}
}

// TestWaits proves that a crash within a step that lets time pass leaves the rest of that time.
func TestWaits(t *testing.T) {
	cm := configMap("a")
	cm.Data = map[string]string{"size": "1"}
	s := toyLife("")
	s.Steps = []Step{Create(cm), {Name: "everything twice", Wait: time.Hour, Do: func(ctx context.Context, w *World) error {
		return w.Client.Patch(ctx, cm.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"data":{"size":"2"}}`)))
	}}}
	e, w := prepared(t, s)
	for _, j := range e.plan.Crashes() {
		if e.reference.Run.StepOf(j.Schedule[0].At) != 2 {
			continue
		}
		j.Like = e.reference.Run
		r := w.Play(t, j)
		if waited := r.Run.Steps[2].Settled.Sub(r.Run.Steps[2].At); waited < time.Hour {
			t.Errorf("%s: the step took %v", j.Schedule, waited)
		}
	}
}

// TestOrder proves that findings come in the same order whoever plays them.
func TestOrder(t *testing.T) {
	tokens := func(workers int) (all []string) {
		for _, f := range Explore(t, toyLife("remembers in the object alone"), Only(Crashes, Faults), Workers(workers)).Findings {
			all = append(all, f.Token)
		}
		return all
	}
	one := tokens(1)
	if diff := cmp.Diff(one, tokens(5)); diff != "" || len(one) == 0 {
		t.Errorf("findings (-one worker +five workers):\n%s", diff)
	}
}

// TestCommand proves that the command to replay names the package of the test, also from
// subtests.
func TestCommand(t *testing.T) {
	t.Run("sub", func(t *testing.T) {
		r := Explore(t, toyLife("finalizer first"), Only(Crashes))
		if len(r.Findings) == 0 {
			t.Fatal("nothing was found")
		}
		f := r.Findings[0]
		want := "replay: go test github.com/trimtab-dev/trimtab/kubesim/fault -run '^TestCommand$/^sub$' -fault.replay=" + f.Token + "\n"
		if _, got, _ := strings.Cut(f.Text, "replay:"); "replay:"+got != want {
			t.Errorf("the report ends with %q, want %q", "replay:"+got, want)
		}
	})
}

// TestOwnerFromTheStart proves that what was there before the operator may own things too.
func TestOwnerFromTheStart(t *testing.T) {
	prepared(t, Scenario{
		Name: "tenants", Steps: []Step{Wait(time.Minute)},
		ExternalAPI: func() ExternalAPI { return &shelf{boxes: map[string]box{"box-1": {owner: "default"}}} },
		Operator:    Operator{SetUp: configMaps(func(context.Context, client.Client, *corev1.ConfigMap) error { return nil })},
	})
}

// TestSample proves that the number of pairs is the author's to choose, and that more of them
// begin with those that fewer are.
func TestSample(t *testing.T) {
	e, _ := prepared(t, toyLife(""))
	tokens := func(n int) (all []string) {
		for _, j := range e.plan.Pairs(n) {
			all = append(all, j.Schedule.Token("toy"))
		}
		return all
	}
	usual, few, many := tokens(SampledPairs), tokens(7), tokens(1000)
	if len(usual) != SampledPairs || len(few) != 7 || len(many) != 1000 {
		t.Fatalf("%d pairs by default, %d of 7 and %d of 1000", len(usual), len(few), len(many))
	}
	if diff := cmp.Diff(usual, many[:SampledPairs]); diff != "" {
		t.Errorf("the first of 1000 (-want +got):\n%s", diff)
	}
	if r := Explore(t, toyLife(""), Only(Pairs), Sample(7)); r.Schedules[Pairs] != 7 {
		t.Errorf("%d pairs were played, want 7", r.Schedules[Pairs])
	}
	s := toyLife("")
	const want = `fault: scenario "toy": Sample(-1) would play no pairs; give a number above 0, or 0 for 200 of them`
	if _, err := newExploration(t, &s, options{pairs: -1}); err == nil || err.Error() != want {
		t.Errorf("a sample of -1 pairs gave %v, want %s", err, want)
	} else if _, ok := errors.AsType[sandbox.MisuseError](err); !ok {
		t.Errorf("%v is no misuse", err)
	}
}
