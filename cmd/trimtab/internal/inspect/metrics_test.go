package inspect

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/internal/running"
	"github.com/trimtab-dev/trimtab/trace"
)

// metrics is what a process serves, as Prometheus reads it.
const metrics = `# HELP passes_total Passes.
# TYPE passes_total counter
passes_total{controller="a",outcome="Done"} 3
passes_total{controller="a",outcome="Fail"} 2
passes_total{controller="b",outcome="Done"} 5
passes_total{controller="b",outcome="Fail"} 1
# TYPE depth gauge
depth{controller="a"} 7
# TYPE took_seconds histogram
took_seconds_bucket{controller="a",le="1"} 1
took_seconds_bucket{controller="a",le="+Inf"} 2
took_seconds_sum{controller="a"} 3
took_seconds_count{controller="a"} 2
`

// process serves what an operator does.
func process(t *testing.T, said any) Operator {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/debug/metrics":
			_, _ = w.Write([]byte(metrics))
		case running.Path:
			_ = json.NewEncoder(w).Encode(said)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return Operator{URL: s.URL}
}

// TestMetrics reads the metrics of a process, and adds them up.
func TestMetrics(t *testing.T) {
	t.Parallel()
	m, err := process(t, nil).Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	of := Where{"controller": "a"}
	got := []any{
		m.Sum("passes_total", nil), m.Sum("passes_total", of), m.Sum("passes_total", Where{"controller": "a", "outcome": "Fail"}), m.Sum("depth", of),
		m.By("passes_total", "outcome", of), m.By("passes_total", "controller", nil), m.Mean("took_seconds", of), m.Mean("took_seconds", Where{"controller": "b"}),
		m.Sum("none", nil), m.By("none", "controller", nil),
	}
	want := []any{
		11.0, 5.0, 2.0, 7.0,
		map[string]float64{"Done": 3, "Fail": 2},
		map[string]float64{"a": 5, "b": 6},
		1500 * time.Millisecond, time.Duration(0),
		0.0,
		map[string]float64{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestDescribe reads what an operator says about itself. One that does not say it is of an older version.
func TestDescribe(t *testing.T) {
	t.Parallel()
	want := running.Operator{Name: "shop", Leads: true, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Missing: []string{"get secrets"}}
	got, err := process(t, want).Describe(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	older := httptest.NewServer(http.NotFoundHandler())
	defer older.Close()
	if _, err := (Operator{URL: older.URL}).Describe(t.Context()); err == nil || !strings.Contains(err.Error(), "is of an older version of trimtab") {
		t.Errorf("an operator that does not know the question: %v", err)
	}
}

// TestFollows: an operator whose processes replace each other is asked at the address of the one that runs.
func TestFollows(t *testing.T) {
	t.Parallel()
	at := ""
	o := Operator{At: func() string { return at }}
	if _, err := o.Trace(t.Context(), trace.Query{}); !errors.Is(err, ErrAway) || !o.Known() || (Operator{}).Known() {
		t.Errorf("while none runs: %v, known %t", err, o.Known())
	}
	for _, name := range []string{"first", "second"} {
		at = process(t, running.Operator{Name: name}).URL
		if d, err := o.Describe(t.Context()); err != nil || d.Name != name {
			t.Errorf("asked %q, %v; want %q", d.Name, err, name)
		}
	}
}
