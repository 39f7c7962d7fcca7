package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// reporter reports one thing after the other, by the size in the spec.
func reporter(reports map[int]conditions.Report) *author {
	return newAuthor(func(_ context.Context, r *run) loop.Outcome {
		r.Report(reports[r.Obj.Spec.Size])
		return loop.Done()
	})
}

func report(state, ready, reason, message string) conditions.Report {
	return conditions.Report{
		State: state, Reason: reason, Message: message, Known: reason,
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionStatus(ready), Reason: reason, Message: message}},
		Event:      conditions.Event{Warning: ready == "False", Reason: reason, Note: message},
	}
}

// TestReport: what an author reports is shown as it is, and told once.
func TestReport(t *testing.T) {
	t.Parallel()
	first, second := report("Working", "False", "Pumping", "the pump runs"), report("Resting", "True", "Full", "the tank is full")
	first.Conditions = append(first.Conditions, metav1.Condition{Type: "Reconciling", Status: "True", Reason: "Pumping", Message: "the pump runs"})
	second.Applied = true
	a := reporter(map[int]conditions.Report{0: first, 1: second, 2: report("Empty", "False", "Leaking", "the tank leaks")})
	w := newControllerTest(t, a, options{})
	w.create("a")
	got := w.await("a", "the first report", func(p *probe.Probe) bool { return p.Status.State == "Working" })
	if got.Status.Message != "the pump runs" || condition(got, "Reconciling") == nil || got.Status.AppliedGeneration != 0 {
		t.Errorf("status %+v", got.Status)
	}
	w.resize(1)
	got = w.await("a", "the second report", func(p *probe.Probe) bool { return p.Status.State == "Resting" })
	if got.Status.Message != "the tank is full" || condition(got, "Reconciling") != nil || got.Status.AppliedGeneration != 2 {
		t.Errorf("status %+v", got.Status)
	}
	w.patch("a", `{"metadata":{"annotations":{"trimtab.dev/reconcile":"again"}}}`)
	w.await("a", "another look", func(p *probe.Probe) bool { return p.Status.HandledReconcile == "again" })
	w.resize(2) // its event comes after a second one about the second report
	want := []string{"Warning Pumping the pump runs", "Normal Full the tank is full", "Warning Leaking the tank leaks"}
	last := func(told []string) bool { return slices.Contains(told, want[2]) }
	if got := w.eventually(last); !slices.Equal(got, want) {
		t.Errorf("events (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// told lists the events of the namespace as "Warning Failed it broke", and their repetitions,
// which are patches of the first, as "again".
func (w *controllerTest) told() []string {
	w.t.Helper()
	var out []string
	for _, r := range w.requests.Select(func(r testenv.Request) bool {
		return r.Resource == "events" && r.Namespace == w.namespace
	}) {
		if r.Verb != "create" {
			out = append(out, "again")
			continue
		}
		var e struct{ Type, Reason, Note string }
		if err := json.Unmarshal(r.Body, &e); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, e.Type+" "+e.Reason+" "+e.Note)
	}
	return out
}

// eventually waits until the events are as ok says.
func (w *controllerTest) eventually(ok func([]string) bool) []string {
	w.t.Helper()
	poll.Until(func() bool { return ok(w.told()) })
	return w.told()
}

// lines keeps what is logged at info about objects.
type lines struct {
	mu  sync.Mutex
	all []map[string]any
}

func (l *lines) write(obj string) {
	var line map[string]any
	if json.Unmarshal([]byte(obj), &line) != nil || line["resource.uid"] == nil || line["to"] == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

func (l *lines) get() []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// TestLog: one line at info for each transition and each new failure, none for what repeats
// itself.
func TestLog(t *testing.T) {
	t.Parallel()
	failing := report("Failed", "False", "Broken", "cannot pump: no water")
	other := report("Failed", "False", "Broken", "cannot pump: no power")
	a := reporter(map[int]conditions.Report{0: failing, 1: failing, 2: other, 3: report("Resting", "True", "Full", "the tank is full"), 4: report("Idle", "True", "Idle", "")})
	w := newControllerTest(t, a, options{})
	w.stop()
	var l lines
	w.log = funcr.NewJSON(l.write, funcr.Options{})
	w.start(a, options{})
	w.create("a")
	for size := range 5 {
		if size > 0 {
			w.resize(size)
		}
		w.await("a", "the pass", func(p *probe.Probe) bool { return p.Status.ObservedGeneration == int64(size+1) })
	}
	poll.Until(func() bool { return len(l.get()) >= 4 })
	var got []string
	for _, line := range l.get() {
		if line["resource.name"] == "a" {
			got = append(got, line["msg"].(string)+" "+line["from"].(string)+">"+line["to"].(string)) //nolint:forcetypeassert // it fails the test
		}
		for _, key := range []string{"apiVersion", "kind", "name", "namespace", "resourceVersion", "generation", "uid"} {
			if line["resource."+key] == nil {
				t.Errorf("no resource.%s in %v", key, line)
			}
		}
	}
	want := []string{"cannot pump: no water >Failed", "cannot pump: no power Failed>Failed", "the tank is full Failed>Resting", "the state is Idle Resting>Idle"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestObjectsAreCounted by what their status says, and no longer when they are gone.
func TestObjectsAreCounted(t *testing.T) {
	t.Parallel()
	known := func(state, status, word string) conditions.Report {
		r := report(state, status, "OfTheAuthor", "a")
		r.Known = word
		return r
	}
	a := reporter(map[int]conditions.Report{0: known("Verifying", "False", "CountedA"), 1: known("of/shop", "True", "CountedB")})
	w := newControllerTest(t, a, options{})
	w.create("a")
	expect := func(why, state, reason string, want float64) {
		t.Helper()
		count := func() float64 { return measured(t, "trimtab_objects", "state", state, "reason", reason) }
		if !poll.Until(func() bool { return count() == want }) {
			t.Errorf("%s: %v objects are %s for the reason %s, want %v", why, count(), state, reason, want)
		}
	}
	expect("after the first pass", "Verifying", "CountedA", 1)
	w.resize(1)
	expect("the author's own state is none of trimtab's", "Other", "CountedB", 1)
	expect("after the second", "Verifying", "CountedA", 0)
	w.delete()
	w.gone()
	expect("after it went", "Other", "CountedB", 0)
}

// answering answers requests that match instead of the API server.
func answering(code int, text string, match func(method, path, body string) bool) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Body == nil {
				return next.RoundTrip(r)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if !match(r.Method, r.URL.Path, string(body)) {
				return next.RoundTrip(r)
			}
			return &http.Response{
				StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
				Body: io.NopCloser(strings.NewReader(text)),
			}, nil
		})
	}
}

// TestStatusThatCannotBeWritten is told, not swallowed.
func TestStatusThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name         string
		code         int
		reason, said string // of the API server
		event, want  string
	}{
		{"the CRD has no status subresource", http.StatusNotFound, "NotFound", "not found", "StatusNotServed", "add the status subresource"},
		{"the operator may not", http.StatusForbidden, "Forbidden", "no right to patch probes/status", "StatusForbidden", "no right to patch"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := reporter(map[int]conditions.Report{0: report("Resting", "True", "Full", "the tank is full")})
			body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":%q}`, test.reason, test.code, test.said)
			w := newControllerTest(t, a, options{}, answering(test.code, body, func(method, path, _ string) bool {
				return method == http.MethodPatch && strings.HasSuffix(path, "/status")
			}))
			w.create("a")
			w.next(a)
			w.next(a) // it is tried again
			told := w.eventually(func(told []string) bool { return len(told) > 0 })
			if len(told) != 1 || !strings.HasPrefix(told[0], "Warning "+test.event) || !strings.Contains(told[0], test.want) {
				t.Errorf("told %q", told)
			}
		})
	}
	t.Run("the API server refuses a part of it", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			r.Obj.Status.Note = "bad"
			r.Report(report("Resting", "True", "Full", "the tank is full"))
			return loop.Done()
		})
		w := newControllerTest(t, a, options{}, answering(http.StatusUnprocessableEntity,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"status.note: Invalid value: bad"}`,
			func(_, path, body string) bool {
				return strings.HasSuffix(path, "/status") && strings.Contains(body, `"note":"bad"`)
			}))
		w.create("a")
		got := w.await("a", "the least of the status", func(p *probe.Probe) bool { return p.Status.State == "Resting" })
		if !ready(got) || !strings.HasPrefix(got.Status.Message, "the tank is full; the rest of the status is refused by the API server: ") ||
			!strings.Contains(got.Status.Message, "status.note") {
			t.Errorf("status %+v", got.Status)
		}
		w.patch("a", `{"metadata":{"annotations":{"trimtab.dev/reconcile":"again"}}}`)
		w.next(a)
		w.next(a)
		told := w.eventually(func(told []string) bool { return len(told) > 1 })
		refused := slices.DeleteFunc(slices.Clone(told), func(s string) bool { return !strings.HasPrefix(s, "Warning StatusRefused") })
		if len(refused) != 1 || slices.Contains(told, "again") {
			t.Errorf("told %q, want one StatusRefused", told)
		}
	})
}

// TestLogIsSafe: what an author says in an error or a panic is logged without credentials, by
// whoever logs it.
func TestLogIsSafe(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
		r.Log().Info("dial postgres://app:" + secret + "@db/x")
		if r.Retry().Attempt == 0 {
			panic("parse postgres://app:" + secret + "@db/x")
		}
		return loop.Fail(errors.New("dial postgres://app:" + secret + "@db/x: refused"))
	})
	w := newControllerTest(t, a, options{})
	w.stop()
	var mu sync.Mutex
	var all []string
	w.log = funcr.NewJSON(func(line string) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, line)
	}, funcr.Options{})
	w.start(a, options{})
	w.create("a")
	logged := func(text string) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(all, func(line string) bool { return strings.Contains(line, text) })
	}
	if !poll.Until(func() bool { return logged("Reconciler error") && logged("db/x: refused") }) {
		t.Fatalf("logged %q", all)
	}
	if logged(secret) {
		t.Errorf("a secret in the log: %q", all)
	}
}

// refusing answers writes of metadata instead of the API server: as an admission webhook does
// (403), or a ValidatingAdmissionPolicy (422).
func refusing(code int, while func() bool) func(http.RoundTripper) http.RoundTripper {
	reason := map[int]string{http.StatusForbidden: "Forbidden", http.StatusUnprocessableEntity: "Invalid"}[code]
	return answering(code,
		fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"denied request: label team is missing"}`, reason, code),
		func(method, path, _ string) bool {
			return method == http.MethodPatch && strings.HasSuffix(path, "/probes/a") && while()
		})
}

// TestMetadataThatCannotBeWritten: a finalizer that admission refuses to be put on, or taken off,
// is what status tells, and no longer when it can be written. Meanwhile it is tried ever more
// slowly.
func TestMetadataThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusForbidden, http.StatusUnprocessableEntity} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			var refused atomic.Bool
			refused.Store(true)
			a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
				r.Conditions().False("Updating", "NotInProgress", "") // it was updated once
				return loop.Done()
			})
			w := newControllerTest(t, cleaner{author: a}, options{}, refusing(code, refused.Load))
			w.create("a")
			says := func(state string) *probe.Probe {
				t.Helper()
				got := w.await("a", "a status that says what is refused", func(p *probe.Probe) bool {
					return p.Status.State == state && strings.Contains(p.Status.Message, "label team is missing")
				})
				failed := condition(got, "Failed")
				if ready(got) || failed == nil || failed.Reason != "WriteRefused" || condition(got, "Reconciling") == nil {
					t.Errorf("status %+v", got.Status)
				}
				return got
			}
			says("Failed")
			refused.Store(false)
			w.await("a", "Ready", ready)
			refused.Store(true)
			w.delete()
			if c := condition(says("Terminating"), "Updating"); c == nil || c.Status != metav1.ConditionFalse {
				t.Errorf("that it was updated once is lost: %+v", c)
			}
			before := a.count("cleanup")
			<-time.After(time.Second)
			if n := a.count("cleanup") - before; n > 2 {
				t.Errorf("%d more cleanups within a second", n)
			}
			refused.Store(false)
			w.gone()
			told := w.eventually(func(told []string) bool { return len(told) >= 3 })
			for i, want := range []string{"Warning WriteRefused", "Normal Succeeded", "Warning WriteRefused"} {
				if i >= len(told) || !strings.HasPrefix(told[i], want) {
					t.Errorf("told %q", told)
				}
			}
		})
	}
}

// TestConflictsThatNeverEnd: an admission webhook that refuses with the code of a conflict is no
// cause to try twenty times a second, and is told.
func TestConflictsThatNeverEnd(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	a := newAuthor(func(context.Context, *run) loop.Outcome { return loop.Done() })
	w := newControllerTest(t, cleaner{author: a}, options{}, answering(http.StatusConflict,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"denied request: quota is used up"}`,
		func(method, path, _ string) bool {
			refused := method == http.MethodPatch && strings.HasSuffix(path, "/probes/a")
			if refused {
				tries.Add(1)
			}
			return refused
		}))
	w.create("a")
	got := w.await("a", "a status that says what is refused", func(p *probe.Probe) bool { return strings.Contains(p.Status.Message, "quota is used up") })
	if failed := condition(got, "Failed"); failed == nil || failed.Reason != "WriteRefused" || got.Status.State != "Failed" {
		t.Errorf("status %+v", got.Status)
	}
	if n := tries.Load(); n > 30 {
		t.Errorf("%d tries", n)
	}
}

// TestStateBesideConditions: an author who has nothing left to do, and says that the object is not
// ready, has not succeeded.
func TestStateBesideConditions(t *testing.T) {
	t.Parallel()
	tests := map[int]struct {
		set  func(*conditions.Set)
		want string
	}{
		0: {func(*conditions.Set) {}, "Succeeded"},
		1: {func(s *conditions.Set) { s.False("Ready", "NoWater", "the tank is empty") }, "Pending"},
		2: {func(s *conditions.Set) { s.Unknown("Ready", "NoGauge", "nobody knows") }, "Pending"},
		3: {func(s *conditions.Set) {
			s.False("Ready", "NoPump", "there is no pump")
			s.True("Stalled", "NoPump", "there is no pump")
		}, "Failed"},
		4: {func(s *conditions.Set) { s.True("Ready", "Full", "the tank is full") }, "Succeeded"},
	}
	a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
		tests[r.Obj.Spec.Size].set(r.Conditions())
		return loop.Done()
	})
	w := newControllerTest(t, a, options{})
	w.create("a")
	for size := range len(tests) {
		if size > 0 {
			w.resize(size)
		}
		got := w.await("a", "the pass", func(p *probe.Probe) bool { return p.Status.ObservedGeneration == int64(size+1) })
		if got.Status.State != tests[size].want {
			t.Errorf("%d: state %s, want %s; conditions %+v", size, got.Status.State, tests[size].want, got.Status.Conditions)
		}
	}
}
