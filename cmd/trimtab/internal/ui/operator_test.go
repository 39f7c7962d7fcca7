package ui

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/inspect"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/internal/running"
	"github.com/trimtab-dev/trimtab/trace"
)

// TestLately: passes are counted by object, the busiest first, with what they did.
func TestLately(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 10, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds-300) * time.Second) }
	a, b := trace.Object{Kind: "Stream", Namespace: "shop", Name: "a"}, trace.Object{Kind: "Stream", Namespace: "shop", Name: "b"}
	record := func(seconds int, o trace.Object, e trace.Event) trace.Record {
		return trace.Record{Time: at(seconds), Controller: "stream", Object: o, Event: e}
	}
	records := []trace.Record{
		record(0, a, trace.Start{}), record(0, a, trace.Call{Op: "observe"}), record(1, a, trace.Decision{Action: "wait", Because: "it is made"}), record(1, a, trace.End{Outcome: "After"}),
		record(50, b, trace.Start{}), record(50, b, trace.Write{Subresource: "status", Err: "too long"}), record(50, b, trace.End{Outcome: "Fail", Err: "write status: too long"}),
		record(60, a, trace.Start{}), record(60, a, trace.Call{Op: "create", Mutating: true}), record(61, a, trace.End{Outcome: "Done"}),
		record(120, a, trace.Start{}), record(120, a, trace.Write{Subresource: "status"}), record(120, a, trace.End{Outcome: "Fail", Err: "no route"}),
		record(130, a, trace.Start{}), // goes on
	}
	by := running.Operator{Started: at(-60), Controllers: []running.Controller{{Name: "stream", APIVersion: "x.io/v1", Kind: "Stream"}}}
	got := latelyOf(records, by, now)
	want := lately{
		Since: at(-60), Passes: 4, Failed: 2, worst: "no route", unwritten: []string{"Stream b: too long"},
		Hot: []hot{
			{Ref: model.Ref{APIVersion: "x.io/v1", Kind: "Stream", Namespace: "shop", Name: "a"}, Controller: "stream", Passes: 3, Failed: 1, Idle: 1, Outcome: "Fail", At: at(120), Why: "no route", PerMinute: 1.5},
			{Ref: model.Ref{APIVersion: "x.io/v1", Kind: "Stream", Namespace: "shop", Name: "b"}, Controller: "stream", Passes: 1, Failed: 1, Outcome: "Fail", At: at(50), Why: "write status: too long"},
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(lately{}), cmpopts.IgnoreUnexported(hot{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if first := latelyOf(records[:4], by, now).Hot[0]; first.Why != "wait: it is made" || first.Idle != 1 {
		t.Errorf("after one pass: %+v, want what it decided", first)
	}
	again := append(records, record(140, b, trace.Start{}), record(140, b, trace.End{Outcome: "Done"}))
	if l := latelyOf(again, by, now); len(l.unwritten) > 0 {
		t.Errorf("a later pass has written it, and it says %q", l.unwritten)
	}
	by.Started = now.Add(-time.Hour)
	if l := latelyOf(records, by, now); !l.Since.Equal(now.Add(-10 * time.Minute)) {
		t.Errorf("since %s, want the last ten minutes", l.Since)
	}
	full := make([]trace.Record, mostRecords)
	for i := range full {
		full[i] = record(i/100, a, trace.Start{})
	}
	if l := latelyOf(full, by, now); !l.Since.Equal(at(0)) {
		t.Errorf("since %s, want the first of the records that were asked for", l.Since)
	}
}

// TestPerPass: what an operator does without a pass does not count.
func TestPerPass(t *testing.T) {
	t.Parallel()
	all := []running.Requests{
		{Verb: "patch", Resource: "streams.x.io/status", Count: 6},
		{Verb: "get", Resource: "secrets", Count: 3},
		{Verb: "list", Resource: "streams.x.io", Count: 50},
		{Verb: "watch", Resource: "streams.x.io", Count: 50},
		{Verb: "update", Resource: "leases.coordination.k8s.io", Count: 500},
		{Verb: "create", Resource: "selfsubjectaccessreviews.authorization.k8s.io", Count: 20},
	}
	if got := perPass(all, 4); got != 2.25 {
		t.Errorf("%v requests for a pass, want 2.25", got)
	}
	if got := perPass(all, 0); got != 0 {
		t.Errorf("%v requests for a pass without passes", got)
	}
}

// TestFull: a controller is full since objects began to wait while all of its workers were busy, and no more when one is free or
// nobody looks.
func TestFull(t *testing.T) {
	t.Parallel()
	var f fullness
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, tt := range []struct {
		at            int // seconds after the start, as want; a negative want: it is not full
		waiting, busy float64
		want          int
	}{{0, 1, 1, -1}, {10, 1, 2, 10}, {40, 9, 2, 10}, {50, 0, 2, -1}, {60, 1, 2, 60}, {70, 5, 1, -1}, {80, 1, 2, 80}, {111, 1, 2, 111}} {
		c := []controller{{Name: "a", Waiting: tt.waiting, Busy: tt.busy, Workers: 2}}
		f.update(c, start.Add(time.Duration(tt.at)*time.Second))
		want := start.Add(time.Duration(tt.want) * time.Second)
		if tt.want < 0 {
			want = time.Time{}
		}
		if !c[0].Full.Equal(want) {
			t.Errorf("look %d: full since %s, want %s", i, c[0].Full, want)
		}
	}
}

// TestControllers reads what controllers do from the metrics of a process, also those of an ordinary controller of
// controller-runtime.
func TestControllers(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`# TYPE controller_runtime_max_concurrent_reconciles gauge
controller_runtime_max_concurrent_reconciles{controller="stream"} 4
controller_runtime_max_concurrent_reconciles{controller="other"} 1
# TYPE controller_runtime_active_workers gauge
controller_runtime_active_workers{controller="stream"} 2
# TYPE workqueue_depth gauge
workqueue_depth{controller="stream",name="stream",priority="0"} 3
workqueue_depth{controller="stream",name="stream",priority="-100"} 4
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="other",result="error"} 1
controller_runtime_reconcile_total{controller="other",result="success"} 6
controller_runtime_reconcile_total{controller="stream",result="success"} 6
# TYPE trimtab_passes_total counter
trimtab_passes_total{controller="stream",kind="Stream",outcome="Done"} 8
trimtab_passes_total{controller="stream",kind="Stream",outcome="Fail"} 2
# TYPE trimtab_failures_total counter
trimtab_failures_total{controller="stream",kind="Stream"} 2
# TYPE trimtab_noop_passes_total counter
trimtab_noop_passes_total{controller="stream",kind="Stream"} 5
# TYPE trimtab_pass_causes_total counter
trimtab_pass_causes_total{cause="event",controller="stream",kind="Stream"} 7
trimtab_pass_causes_total{cause="time",controller="stream",kind="Stream"} 3
# TYPE trimtab_pass_duration_seconds histogram
trimtab_pass_duration_seconds_bucket{controller="stream",kind="Stream",le="+Inf"} 10
trimtab_pass_duration_seconds_sum{controller="stream",kind="Stream"} 2
trimtab_pass_duration_seconds_count{controller="stream",kind="Stream"} 10
# TYPE trimtab_source_up gauge
trimtab_source_up{controller="stream",source="poll"} 0
trimtab_source_up{controller="stream",source="secrets"} 1
# TYPE trimtab_vanished_total counter
trimtab_vanished_total{controller="stream",kind="Stream",reason="CleanedUp"} 4
trimtab_vanished_total{controller="stream",kind="Stream",reason="Missed"} 1
# TYPE trimtab_webhook_cert_expiry_timestamp_seconds gauge
trimtab_webhook_cert_expiry_timestamp_seconds{operator="streams"} 1000000
`))
	}))
	defer s.Close()
	m, err := inspect.Operator{URL: s.URL}.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []controller{
		{Name: "other", Workers: 1, Passes: 7, Failed: 1, Causes: map[string]float64{}},
		{Name: "stream", Kind: "Stream", Waiting: 7, Busy: 2, Workers: 4, Passes: 10, Failed: 2, Idle: 5, Causes: map[string]float64{"event": 7, "time": 3}, Pass: 200, Down: []string{"poll"}},
	}
	if diff := cmp.Diff(want, controllersOf(m)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	counted := troublesOf(m, time.Unix(1000000, 0).Add(-6*24*time.Hour))
	if counted["trimtab_vanished_total"] != 1 || counted["trimtab_webhook_cert_expiry_timestamp_seconds"] != 1 || counted["trimtab_budget_exceeded_total"] != 0 {
		t.Errorf("troubles %v, want one object that vanished and a certificate that expires in 6 days", counted)
	}
	if counted := troublesOf(m, time.Unix(1000000, 0).Add(-8*24*time.Hour)); counted["trimtab_webhook_cert_expiry_timestamp_seconds"] != 0 {
		t.Errorf("troubles %v, want none about a certificate that expires in 8 days", counted)
	}
}

// TestNobodyRuns: while one process replaces another, the page says that it goes on.
func TestNobodyRuns(t *testing.T) {
	t.Parallel()
	p := operatorPage{}
	err := p.ask(t.Context(), inspect.Operator{At: func() string { return "" }}, &fullness{})
	if !errors.Is(err, inspect.ErrAway) || p.Process != nil {
		t.Errorf("%v, %+v", err, p.Process)
	}
}
