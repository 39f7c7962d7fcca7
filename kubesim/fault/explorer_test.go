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
)

// prepared returns an explorer that has played the undisturbed run, and that run.
func prepared(t *testing.T, s Scenario) (*explorer, result, *worker) {
	t.Helper()
	e, err := newExplorer(&s, options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.quieten())
	reference, err := e.undisturbed(t)
	if err != nil {
		t.Fatal(err)
	}
	w, err := e.newWorker()
	if err != nil {
		t.Fatal(err)
	}
	return e, reference, w
}

func (p *plan) all() []job {
	jobs := slices.Concat(p.crashes(), p.faults(), p.stale(), p.duplicates())
	for i := range jobs {
		jobs[i].like = p.reference.run
	}
	return jobs
}

// TestSnapshots proves that a schedule that begins at its crash goes on as one that is played
// from the beginning.
func TestSnapshots(t *testing.T) {
	_, reference, w := prepared(t, toyLife(""))
	p := &plan{scenario: w.explorer.scenario, reference: reference, pruned: map[Rule]int{}, keep: []Rule{NoEffect, SameInstant}}
	jobs := p.crashes()
	if len(jobs) < 12 {
		t.Fatalf("%d crashes of a scenario with 8 writes", len(jobs))
	}
	for _, j := range jobs {
		if j.from == nil {
			t.Fatalf("%s has no snapshot to begin from", j.schedule)
		}
		j.like = reference.run
		short := w.play(t, j)
		j.from = nil
		long := w.play(t, j)
		if diff := cmp.Diff(lines(long), lines(short)); diff != "" {
			t.Errorf("%s: (-from the beginning +from the snapshot)\n%s", j.schedule, diff)
		}
	}
}

// lines is a run in short, for comparisons.
func lines(r result) (all []string) {
	for i := range r.run.Calls {
		all = append(all, lineOf(r.run, i))
	}
	for _, s := range r.run.Steps {
		all = append(all, s.Name)
		for _, key := range slices.Sorted(maps.Keys(s.State.Objects)) {
			all = append(all, key+s.State.Objects[key])
		}
	}
	return all
}

// TestRepeats plays every schedule again on other workers: equal schedules make equal runs.
func TestRepeats(t *testing.T) {
	e, reference, _ := prepared(t, toyLife(""))
	p := &plan{scenario: e.scenario, reference: reference, pruned: map[Rule]int{}}
	var jobs []job
	first := p.all()
	for range 3 {
		jobs = append(jobs, first...)
	}
	for range 100 {
		jobs = append(jobs, job{})
	}
	traces := map[string]map[string]bool{}
	err := e.playAll(t, jobs, func(j job, r result) {
		key := j.schedule.token("")
		if traces[key] == nil {
			traces[key] = map[string]bool{}
		}
		traces[key][traceOf(r.run)] = true
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
	e, reference, w := prepared(t, toyLife("compensates in a defer"))
	put := slices.IndexFunc(reference.run.Calls, func(c history.Call) bool { return c.What == "put new" })
	next := slices.IndexFunc(reference.run.Calls[put+1:], func(c history.Call) bool { return c.Write }) + put + 1
	r := w.play(t, job{schedule: schedule{{kind: crashBefore, at: next}}, like: reference.run})
	if diff := cmp.Diff([]string{"outside remove box-1"}, r.run.Processes[0].Fenced); diff != "" {
		t.Errorf("calls refused after death (-want +got):\n%s", diff)
	}
	_ = e
}

// TestBugs proves that the three ways in which an operator loses or repeats things are found,
// and that one without them is not accused.
func TestBugs(t *testing.T) {
	cases := map[string]struct {
		invariant string
		token     string
	}{
		"":                              {},
		"remembers in the object alone": {invariant: "I3", token: crashAfter},
		"finalizer first":               {invariant: "I2", token: crashAfter},
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

func TestTokens(t *testing.T) {
	cases := map[string]struct {
		schedule schedule
		token    string
	}{
		"undisturbed": {nil, "v1/a b/c/"},
		"one":         {schedule{{kind: crashAfter, at: 7}}, "v1/a b/c/crash-after@7"},
		"a race":      {schedule{{kind: race, at: 12, arg: "1"}}, "v1/a b/c/race@12(1)"},
		"two":         {schedule{{kind: crashAfter, at: 7}, {kind: twice, at: 1}}, "v1/a b/c/crash-after@7+twice@1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.schedule.token("a b/c"); got != c.token {
				t.Errorf("token is %q, want %q", got, c.token)
			}
			scenario, s, err := parseToken(c.token)
			if err != nil || scenario != "a b/c" || !slices.Equal(s, c.schedule) {
				t.Errorf("parsed as %q %v %v", scenario, s, err)
			}
		})
	}
	for _, bad := range []string{"", "v2/a/crash-after@7", "v1/crash-after@7x", "v1/a/@7", "v1/a/crash-after@x", "v1/a/nokind@1"} {
		if _, _, err := parseToken(bad); err == nil {
			t.Errorf("token %q was taken", bad)
		}
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
	e, reference, w := prepared(t, s)
	p := &plan{scenario: e.scenario, reference: reference, pruned: map[Rule]int{}}
	for _, j := range p.crashes() {
		if stepOf(reference.run, j.schedule[0].at) != 2 {
			continue
		}
		j.like = reference.run
		r := w.play(t, j)
		if waited := r.run.Steps[2].Settled.Sub(r.run.Steps[2].At); waited < time.Hour {
			t.Errorf("%s: the step took %v", j.schedule, waited)
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
	for binary, want := range map[string]string{
		"example.com/op/internal/controller.test": "example.com/op/internal/controller",
		"example.com/op.test":                     "example.com/op", // the module's root
		"command-line-arguments.test":             "",               // go test a_test.go
		"_/home/me/op.test":                       "",               // outside of any module
		"":                                        "",               // another tool's
	} {
		if got := importPath(binary); got != want {
			t.Errorf("the package of %q is %q, want %q", binary, got, want)
		}
	}
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
	e, reference, _ := prepared(t, toyLife(""))
	tokens := func(n int) (all []string) {
		p := &plan{scenario: e.scenario, reference: reference, pruned: map[Rule]int{}}
		for _, j := range p.pairs(n) {
			all = append(all, j.schedule.token("toy"))
		}
		return all
	}
	usual, few, many := tokens(0), tokens(7), tokens(1000)
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
	if _, err := newExplorer(&s, options{pairs: -1}); err == nil || err.Error() != want {
		t.Errorf("a sample of -1 pairs gave %v, want %s", err, want)
	} else if _, ok := errors.AsType[misuse](err); !ok {
		t.Errorf("%v is no misuse", err)
	}
}
