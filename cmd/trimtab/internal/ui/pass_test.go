package ui

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/inspect"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/trace"
)

// recorder is the flight recorder of an operator, and what serves it.
type recorder struct {
	ring *trace.Ring
	at   time.Time
}

func newRecorder(t *testing.T, o trace.RingOptions) (*recorder, *Server) {
	t.Helper()
	r := &recorder{trace.NewRing(o), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		q := req.URL.Query()
		sink := trace.JSON(w)
		for _, rec := range r.ring.Select(trace.Query{Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name"), UID: q.Get("uid")}) {
			sink.Record(rec)
		}
	}))
	t.Cleanup(served.Close)
	return r, New(Options{Operator: inspect.Operator{URL: served.URL}})
}

// pass records events of a pass, a millisecond apart.
func (r *recorder) pass(number uint64, o trace.Object, events ...trace.Event) {
	for _, e := range events {
		r.at = r.at.Add(time.Millisecond)
		r.ring.Record(trace.Record{Time: r.at, Controller: "instances", Object: o, Pass: number, Event: e})
	}
}

var orders = trace.Object{Kind: "Instance", Namespace: "shop", Name: "orders", UID: "u1"}

// lives records the passes over an object: one that fails, one that succeeds, and one that changes nothing.
func (r *recorder) lives() {
	observe := trace.Call{Op: "observe", Target: "orders", Result: "Missing", Took: time.Millisecond}
	r.pass(1, orders, trace.Start{Generation: 1, ResourceVersion: "7"}, observe, trace.Call{Op: "create", Target: "orders", Mutating: true, Err: "quota"}, trace.End{Outcome: "Fail", Err: "quota", Again: time.Second})
	r.pass(2, trace.Object{Kind: "Instance", Namespace: "shop", Name: "billing", UID: "u2"}, trace.Start{Generation: 1}, trace.End{Outcome: "Done"})
	r.pass(3, orders, trace.Start{Generation: 1, ResourceVersion: "8", Attempt: 1}, observe, trace.Call{Op: "create", Target: "orders", Mutating: true}, trace.End{Outcome: "Done", Took: 3 * time.Millisecond})
	r.pass(4, orders, trace.Start{Generation: 1, ResourceVersion: "9"}, trace.Call{Op: "observe", Target: "orders", Result: "Available"}, trace.End{Outcome: "Done"})
}

func queryOf(more ...string) url.Values {
	q := url.Values{"apiVersion": {"cloud.trimtab.dev/v1"}, "kind": {"Instance"}, "namespace": {"shop"}, "name": {"orders"}}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return q
}

// pageOf asks for the page of a pass.
func pageOf(t *testing.T, s *Server, q url.Values) passPage {
	t.Helper()
	v, err := s.pass(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return v.(passPage)
}

// TestPass: a pass is shown among those over its object, and compared with the one before it, or with another one.
func TestPass(t *testing.T) {
	t.Parallel()
	r, s := newRecorder(t, trace.RingOptions{})
	r.lives()
	p := pageOf(t, s, queryOf("uid", "u1", "controller", "instances", "pass", "3"))
	if len(p.Steps) != 4 || p.Steps[0].After != 0 || p.Steps[2].After != 2*time.Millisecond || p.Steps[3].Record.Event.(trace.End).Outcome != "Done" || len(p.Lacks) > 0 {
		t.Errorf("steps %+v, and it lacks %q", p.Steps, p.Lacks)
	}
	if want := []string{"create orders"}; !cmp.Equal(want, p.Pass.Changed) || p.Pass.Took != 3*time.Millisecond {
		t.Errorf("it is shown as %+v", p.Pass)
	}
	if p.Previous.Number != 1 || p.Next.Number != 4 || len(p.Others) != 2 || p.Others[0].Number != 4 || p.Others[1].Number != 1 {
		t.Errorf("between %+v and %+v, among %+v", p.Previous, p.Next, p.Others)
	}
	want := []inspect.Line{
		{Sign: "-", Text: "start    generation 1"},
		{Sign: "+", Text: "start    generation 1, attempt 1"},
		{Sign: "=", Text: "observe  orders -> Missing"},
		{Sign: "-", Text: "create   orders -> error: quota"},
		{Sign: "-", Text: "end      Fail: quota; again in 1s"},
		{Sign: "+", Text: "create   orders -> ok"},
		{Sign: "+", Text: "end      Done"},
	}
	if diff := cmp.Diff(want, p.Compared); diff != "" || p.With.Number != 1 {
		t.Errorf("compared with pass %d (-want +got)\n%s", p.With.Number, diff)
	}
	for from, with := range map[string]string{"1": "4", "4": "1"} { // in either direction, the older one is first
		p = pageOf(t, s, queryOf("pass", from, "with", with))
		if got := p.Compared[0]; got != (inspect.Line{Sign: "=", Text: "start    generation 1"}) || p.Compared[1].Text != "observe  orders -> Missing" || p.Compared[1].Sign != "-" {
			t.Errorf("%s with %s: %+v", from, with, p.Compared)
		}
	}
	if p := pageOf(t, s, queryOf("pass", "1")); p.With != nil || p.Previous != nil {
		t.Errorf("the first pass is compared with %+v, and is after %+v", p.With, p.Previous)
	}
}

// TestPassLacks: what is not recorded is said.
func TestPassLacks(t *testing.T) {
	t.Parallel()
	r, s := newRecorder(t, trace.RingOptions{Records: 4})
	r.pass(1, orders, trace.Start{}, trace.Decision{Action: "wait"}, trace.End{Outcome: "Again"})
	r.pass(2, orders, trace.Start{}, trace.Decision{Action: "wait"})
	for number, want := range map[string]string{"1": "The beginning of the pass is not recorded any more", "2": "The pass has not ended yet."} {
		if p := pageOf(t, s, queryOf("pass", number)); len(p.Lacks) != 1 || !strings.HasPrefix(p.Lacks[0], want) {
			t.Errorf("pass %s lacks %q, want %q", number, p.Lacks, want)
		}
	}
	r.pass(3, orders, trace.Start{})
	if p := pageOf(t, s, queryOf("pass", "2")); len(p.Lacks) != 1 || p.Lacks[0] != "The end of the pass is not recorded." {
		t.Errorf("a pass before another one lacks %q", p.Lacks)
	}
}

// TestPassProblems: what cannot be shown is said with the way out.
func TestPassProblems(t *testing.T) {
	t.Parallel()
	r, s := newRecorder(t, trace.RingOptions{})
	r.lives()
	tests := map[string]struct {
		why    string
		server *Server
		query  url.Values
		says   string
	}{
		"forgotten":       {"the recorder keeps the newest", s, queryOf("pass", "99"), "pass 99 is not recorded"},
		"of another one":  {"its pages are its own", s, queryOf("pass", "2"), "pass 2 is not recorded"},
		"of an older one": {"another object may have had the name", s, queryOf("pass", "1", "uid", "u0"), "pass 1 is not recorded"},
		"no number":       {"an address may be typed", s, queryOf("pass", "x"), "name a pass by its number"},
		"no object":       {"an address may be typed", s, url.Values{"pass": {"1"}}, "name an object"},
		"no operator":     {"it is the zero value", New(Options{}), queryOf("pass", "1"), "trimtab ui --operator URL"},
		"cluster-scoped":  {"in a query, no namespace is any", s, queryOf("pass", "1", "namespace", ""), "pass 1 is not recorded"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := tt.server.pass(t.Context(), tt.query); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q: %s", err, tt.says, tt.why)
			}
		})
	}
}

// TestLatestPasses: the page of an object has its latest passes, the newest first, and says if there is nobody to ask.
func TestLatestPasses(t *testing.T) {
	t.Parallel()
	r, s := newRecorder(t, trace.RingOptions{})
	o := model.Object{Ref: model.Ref{APIVersion: "cloud.trimtab.dev/v1", Kind: "Instance", Namespace: "shop", Name: "orders"}, UID: "u1"}
	for number := range uint64(latest + 2) {
		r.pass(number+1, orders, trace.Start{}, trace.End{Outcome: "Done"})
	}
	got := latestOf(s.records(t.Context(), o))
	if len(got.Passes) != latest || got.Passes[0].Number != latest+2 || got.Older != 2 {
		t.Errorf("%d passes, the first is %d, and %d are older; want the %d newest", len(got.Passes), got.Passes[0].Number, got.Older, latest)
	}
	if got := latestOf(New(Options{}).records(t.Context(), o)); !strings.Contains(got.Problem, "--operator URL") || got.Passes == nil {
		t.Errorf("with no operator: %+v", got)
	}
}

// TestSavedTest: a test is written from a pass and from the object of now, for the module that the server knows.
func TestSavedTest(t *testing.T) {
	t.Parallel()
	r, s := newRecorder(t, trace.RingOptions{})
	r.lives()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": "small"}}}
	u.SetAPIVersion("cloud.trimtab.dev/v1")
	u.SetKind("Instance")
	u.SetNamespace("shop")
	u.SetName("orders")
	u.SetUID("u1")
	reader := fake.NewClientBuilder().WithObjects(u).Build()
	s.options.Cluster = func() *model.Cluster { return model.New(reader, nil, nil) }
	s.options.Module = "example.com/shop"
	for name, tt := range map[string]struct {
		why   string
		query url.Values
		code  int
		says  string
	}{
		"written":     {"the whole pass is recorded", queryOf("pass", "4"), http.StatusOK, `example.com/shop/api/v1`},
		"no pass":     {"it is forgotten", queryOf("pass", "99"), http.StatusUnprocessableEntity, "pass 99 is not recorded"},
		"no object":   {"it begins with one", queryOf("pass", "2", "name", "billing"), http.StatusUnprocessableEntity, "a test begins with the object: Instance shop/billing does not exist"},
		"not a whole": {"nothing could be compared", queryOf("pass", "5"), http.StatusUnprocessableEntity, "the end of the pass is not recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			r.pass(5, orders, trace.Start{})
			answer := httptest.NewRecorder()
			s.test(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/test?"+tt.query.Encode(), nil))
			if body := answer.Body.String(); answer.Code != tt.code || !strings.Contains(body, tt.says) {
				t.Errorf("%d %s; want %d with %q: %s", answer.Code, body, tt.code, tt.says, tt.why)
			}
		})
	}
}
