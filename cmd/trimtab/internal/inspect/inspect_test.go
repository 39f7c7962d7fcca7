package inspect

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/trace"
)

// TestTrace asks for all that a query can say, and reads what a sink wrote.
func TestTrace(t *testing.T) {
	t.Parallel()
	want := []trace.Record{{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Controller: "instances", Object: trace.Object{Kind: "Instance", Name: "orders"}, Pass: 7,
		Event: trace.Call{Op: "create", Target: "i-7", Took: time.Second},
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		since, err := time.ParseDuration(q.Get("since"))
		if err != nil || since < time.Hour || since > 2*time.Hour {
			t.Errorf("since=%s, want about an hour", q.Get("since"))
		}
		q.Del("since")
		if got := r.URL.Path + "?" + q.Encode(); got != "/debug/trace?controller=c&kind=k&last=3&name=n&namespace=ns&uid=u" {
			t.Errorf("asked for %s", got)
		}
		trace.JSON(w).Record(want[0])
	}))
	defer s.Close()
	got, err := Operator{URL: s.URL}.Trace(t.Context(), trace.Query{Controller: "c", Kind: "k", Namespace: "ns", Name: "n", UID: "u", Since: time.Now().Add(-time.Hour), Last: 3})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestRefused: an operator that cannot answer is an error that says where, and what it said.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "only for this machine", http.StatusForbidden)
	}))
	_, err := Operator{URL: s.URL}.Trace(t.Context(), trace.Query{})
	if err == nil || !strings.Contains(err.Error(), s.URL) || !strings.Contains(err.Error(), "only for this machine") {
		t.Errorf("the error of a refusal: %v", err)
	}
	s.Close()
	if _, err := (Operator{URL: s.URL}).Trace(t.Context(), trace.Query{}); err == nil {
		t.Error("an operator that is away answers")
	}
}
