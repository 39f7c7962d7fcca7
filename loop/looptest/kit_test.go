package looptest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop"
)

// TestDiff: each expectation fails when it should.
func TestDiff(t *testing.T) {
	t.Parallel()
	got := Result{
		Outcome: "Done", State: "Succeeded", Message: "all is well", Again: true, Next: time.Minute,
		Writes: []string{"patch probes n/a {}", "apply probes/status n/a {}"}, Events: []string{"Normal Succeeded all is well"},
		Conditions: []string{"Ready True Succeeded all is well"},
	}
	exact := func() Want {
		return Want{
			Outcome: "Done", State: "Succeeded", Message: "all is well", Next: time.Minute,
			Writes: []string{"patch probes n/a", "apply probes/status n/a {}"}, Events: []string{"Normal Succeeded"}, Conditions: []string{"Ready True", "no Stalled"},
		}
	}
	if diff := exact().Diff(got); diff != "" {
		t.Errorf("what was wanted differs:\n%s", diff)
	}
	tests := map[string]struct {
		why    string
		change func(*Want)
	}{
		"no writes":           {"nil means none", func(w *Want) { w.Writes = nil }},
		"fewer writes":        {"all are compared", func(w *Want) { w.Writes = w.Writes[:1] }},
		"more writes":         {"all are compared", func(w *Want) { w.Writes = append(w.Writes, "delete probes n/a") }},
		"the order of writes": {"it counts", func(w *Want) { w.Writes[0], w.Writes[1] = w.Writes[1], w.Writes[0] }},
		"another body":        {"it counts if it is there", func(w *Want) { w.Writes[0] = `patch probes n/a {"a":1}` }},
		"part of a word":      {"a line begins with whole words", func(w *Want) { w.Writes[0] = "patch probes n/" }},
		"no events":           {"nil means none", func(w *Want) { w.Events = nil }},
		"another event":       {"it differs", func(w *Want) { w.Events[0] = "Warning Succeeded" }},
		"another status":      {"it differs", func(w *Want) { w.Conditions[0] = "Ready False" }},
		"another condition":   {"it is not there", func(w *Want) { w.Conditions = append(w.Conditions, "Stalled True") }},
		"an absent condition": {"it is there", func(w *Want) { w.Conditions[0] = "no Ready" }},
		"no next pass":        {"one is due", func(w *Want) { w.Next = Never }},
		"another outcome":     {"it differs", func(w *Want) { w.Outcome = "Fail" }},
		"another state":       {"it differs", func(w *Want) { w.State = "Failed" }},
		"another message":     {"it differs", func(w *Want) { w.Message = "all is" }},
		"another delay":       {"it differs", func(w *Want) { w.Next++ }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := exact()
			test.change(&want)
			if want.Diff(got) == "" {
				t.Errorf("%s, and no difference was found", test.why)
			}
		})
	}
	if (Want{Next: time.Minute}).Diff(Result{Next: time.Minute}) == "" {
		t.Error("no pass is due, and that was not found")
	}
	if diff := (Want{Next: Never}).Diff(Result{}); diff != "" {
		t.Errorf("no pass is due, as wanted, and that differs:\n%s", diff)
	}
}

// failing is a test whose errors are kept.
type failing struct {
	testing.TB
	errors []string
}

func (f *failing) Helper() {}

func (f *failing) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *failing) Error(args ...any) { f.errors = append(f.errors, fmt.Sprint(args...)) }

// says reports whether there is one error with these texts.
func (f *failing) says(texts ...string) bool {
	for _, text := range texts {
		if len(f.errors) != 1 || !strings.Contains(f.errors[0], text) {
			return false
		}
	}
	return true
}

// TestCase: a case that fails says why.
func TestCase(t *testing.T) {
	t.Parallel()
	there, gone := Result{Object: &probe.Probe{}}, Result{}
	for name, test := range map[string]struct {
		c    Case
		got  Result
		says []string
	}{
		"a difference":    {Case{Why: "it rains", Want: Want{Writes: []string{"a"}}}, there, []string{"it rains", "Writes", "the whole pass"}},
		"gone":            {Case{Why: "it rains"}, gone, []string{"it rains", "gone: true, want false"}},
		"not gone":        {Case{Why: "it rains", Want: Want{Gone: true}}, there, []string{"gone: false, want true"}},
		"nothing of both": {Case{Absent: true}, gone, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &failing{TB: t}
			test.c.compare(f, test.got)
			if (len(test.says) > 0 || len(f.errors) > 0) && !f.says(test.says...) {
				t.Errorf("said %q, want one error with %q", f.errors, test.says)
			}
		})
	}
}

// broken fails always.
type broken struct{}

func (broken) Reconcile(context.Context, *loop.Run[*probe.Probe]) loop.Outcome {
	return loop.Fail(errors.New("it is broken"))
}

// keeping never lets an object go.
type keeping struct{}

func (keeping) Reconcile(context.Context, *loop.Run[*probe.Probe]) loop.Outcome { return loop.Done() }

func (keeping) Cleanup(context.Context, *loop.Run[*probe.Probe]) loop.CleanupOutcome {
	return loop.Keep(time.Hour)
}

// TestBroken: what plays a controller that fails finds that.
func TestBroken(t *testing.T) {
	t.Parallel()
	obj := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
	cluster := Cluster{AddToScheme: probe.AddToScheme}
	process := func() Controller { return loop.New[*probe.Probe](broken{}, loop.Options[*probe.Probe]{}) }
	f := &failing{TB: t}
	Case{Why: "it works", Object: obj, Want: Want{State: "Succeeded"}}.play(f, Suite{New: process, Cluster: cluster})
	if !f.says("it works", "Succeeded", "it is broken") {
		t.Errorf("a case said %q", f.errors)
	}
	synctest.Test(t, func(t *testing.T) {
		s := Sweep{Cluster: cluster, Versions: []client.Object{obj}, New: func() Subject { return Subject{Process: process} }}
		l, f := s.play(t, Fault{Nth: -1}), &failing{TB: t}
		if l.check(f); !f.says("undisturbed", "it is broken") {
			t.Errorf("a sweep said %q", f.errors)
		}
		s.New = func() Subject {
			return Subject{Process: func() Controller { return loop.New[*probe.Probe](keeping{}, loop.Options[*probe.Probe]{}) }}
		}
		l, f = s.play(t, Fault{Nth: -1}), &failing{TB: t}
		if l.check(f); !f.says("the object is left") {
			t.Errorf("a sweep of an object that stays said %q", f.errors)
		}
	})
}

// careless creates something outside of the cluster in each process, and never looks whether it is there.
type careless struct{ made *int }

func (c careless) Reconcile(_ context.Context, r *loop.Run[*probe.Probe]) loop.Outcome {
	if r.Obj.Status.Note == "" {
		*c.made++
		r.Obj.Status.Note = "made"
	}
	return loop.Done()
}

// TestSweepFinds: a sweep finds what a controller makes twice, and names the write.
func TestSweepFinds(t *testing.T) {
	t.Parallel()
	obj := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
	s := Sweep{
		Cluster: Cluster{AddToScheme: probe.AddToScheme}, Versions: []client.Object{obj},
		New: func() Subject {
			made := new(int)
			return Subject{
				Process:  func() Controller { return loop.New[*probe.Probe](careless{made}, loop.Options[*probe.Probe]{}) },
				External: func() map[string]string { return map[string]string{"made": fmt.Sprint(*made)} },
			}
		},
	}
	play := func(fault Fault) (l life) {
		synctest.Test(t, func(t *testing.T) { l = s.play(t, fault) })
		return l
	}
	quiet := play(Fault{Nth: -1})
	quiet.check(t)
	for _, useless := range []life{{}, {writes: []string{"a"}, failures: []string{"the object is left after its deletion"}}} {
		f := &failing{TB: t}
		if useless.check(f); len(f.errors) != 1 {
			t.Errorf("a useless run said %q", f.errors)
		}
	}
	for name, test := range map[string]struct {
		fault Fault
		says  []string
	}{
		"killed before the write that says it": {Fault{Nth: 1, Kill: true}, []string{`killed at "apply probes/status n/a"`, "after version 1"}},
		"killed after it":                      {Fault{Nth: 1, Kill: true, After: true}, nil},
		"never killed":                         {Fault{Nth: 9, Kill: true}, []string{"was not killed"}},
	} {
		f := &failing{TB: t}
		l := play(test.fault)
		l.stages = l.stages[:1] // what was made twice is there until the end
		l.stages = append(l.stages, quiet.stages[1])
		if l.compare(f, quiet); (len(test.says) > 0 || len(f.errors) > 0) && !f.says(test.says...) {
			t.Errorf("%s: said %q, want one error with %q", name, f.errors, test.says)
		}
	}
}

// TestSweepFails: what still fails after a kill is an error of the sweep.
func TestSweepFails(t *testing.T) {
	t.Parallel()
	f := &failing{TB: t}
	life{killed: "a", failures: []string{"the object is left after its deletion"}}.compare(f, life{})
	if !f.says(`killed at "a"`, "the object is left after its deletion") {
		t.Errorf("said %q", f.errors)
	}
}

// TestScope: what is given in the wrong scope, and files that are no CRDs, are refused with the way out.
func TestScope(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	must(t, errors.Join(thing.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)))
	wide, narrow := &thing.ClusterProvider{}, &thing.Provider{}
	wide.Name, narrow.Name = "a", "a"
	placed := &thing.ClusterProvider{}
	placed.Name, placed.Namespace = "a", "n"
	for name, test := range map[string]struct {
		crds fs.FS
		obj  client.Object
		says string
	}{
		"no CRDs":                     {nil, wide, `the ClusterProvider "a" has no namespace; give it one, or, if its kind is cluster-scoped, set looptest.Cluster.CRDs to the CRDs that say so`},
		"CRDs":                        {thing.CRDs, wide, ""},
		"a namespaced kind":           {thing.CRDs, narrow, `the Provider "a" has no namespace`},
		"a namespace where none goes": {thing.CRDs, placed, `the ClusterProvider "a" is cluster-scoped, and has the namespace "n"; leave that out`},
		"other objects":               {fstest.MapFS{"a.yaml": {Data: []byte("kind: Secret")}}, wide, "read Cluster.CRDs: a.yaml: contains a Secret; only CustomResourceDefinitions are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, err := kindsOf(scheme, test.crds)
			if err == nil {
				_, err = newServer(t.Context(), scheme, k, []client.Object{test.obj})
			}
			if said := fmt.Sprint(err); (err == nil) != (test.says == "") || !strings.Contains(said, test.says) && err != nil {
				t.Errorf("said %s, want %q", said, test.says)
			}
		})
	}
}

// TestKillTogether: a process dies once, however many of its requests meet the fault at the same time.
func TestKillTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		injector := Inject(Fault{After: true, Kill: true})
		var arrived sync.WaitGroup
		arrived.Add(2)
		wrapped := injector.Wrap(transport{do: func(r *http.Request) (*http.Response, error) {
			arrived.Done()
			arrived.Wait()
			return nil, ErrCut
		}})
		together(2, func(int) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://in-memory/api/v1/namespaces/n/configmaps", nil)
			must(t, err)
			if _, err := wrapped.RoundTrip(req); !errors.Is(err, ErrKilled) { //nolint:bodyclose // there is no answer
				t.Errorf("got %v, want that the process was killed", err)
			}
		})
		<-injector.Killed()
	})
}
