package ui

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/inspect"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/trace"
)

// byAnother are records of another controller.
func byAnother(records []trace.Record) []trace.Record {
	for i := range records {
		records[i].Controller = "another"
	}
	return records
}

// TestNext: what comes next is said if something tells it, and at which time if that is known.
func TestNext(t *testing.T) {
	t.Parallel()
	stalled := []metav1.Condition{{Type: "Stalled", Status: "True"}}
	tests := map[string]struct {
		why        string
		paused     string
		conditions []metav1.Condition
		records    []trace.Record
		want       []string
	}{
		"nothing":  {"nobody tells", "", nil, nil, nil},
		"stalled":  {"the status tells", "", stalled, nil, []string{"nothing is tried before something changes"}},
		"running":  {"a pass has begun and has not ended", "", stalled, recorded(0, trace.End{Again: time.Minute}, trace.Start{}, trace.Decision{}), []string{"pass 7 runs"}},
		"retries":  {"and it is not the first attempt", "", nil, recorded(0, trace.Start{Attempt: 2}), []string{"pass 7 runs; it is attempt 3"}},
		"retry":    {"the third attempt failed", "", nil, recorded(0, trace.Start{Attempt: 2}, trace.End{Err: "refused", Again: 8 * time.Second}), []string{"9 attempt 4, unless a change causes one before"}},
		"again":    {"it is looked at from time to time", "", nil, recorded(0, trace.Start{}, trace.End{Again: 30 * time.Second}), []string{"31 the next pass, unless a change causes one before"}},
		"events":   {"only a change wakes it", "", nil, recorded(0, trace.End{}), []string{"nothing is due; a change causes the next pass"}},
		"terminal": {"it was refused for good; the records know more than the condition", "", stalled, recorded(0, trace.End{Err: "refused"}), []string{"nothing is tried before something changes"}},
		"gone":     {"the finalizer was removed", "", nil, recorded(0, trace.End{Outcome: "Removed"}), []string{"nothing: the object is gone"}},
		"paused":   {"until a time; what is due at no time comes last", "2026-01-02T03:00:40Z", nil, recorded(0, trace.End{}), []string{"40 the pause ends", "nothing is due; a change causes the next pass"}},
		"both":     {"what is due first is first", "2026-01-02T03:00:20Z", nil, recorded(0, trace.End{Again: 10 * time.Second}), []string{"10 the next pass, unless a change causes one before", "20 the pause ends"}},
		"two": {
			"each controller has its own attempts, and its own time", "", nil, slices.Concat(
				byAnother(recorded(0, trace.Start{Attempt: 4}, trace.End{Err: "refused", Again: 8 * time.Second})), recorded(2, trace.Start{}, trace.End{})),
			[]string{"9 controller another: attempt 6, unless a change causes one before", "controller c: nothing is due; a change causes the next pass"},
		},
		"over":   {"the pause is over", "2026-01-02T03:00:04Z", nil, nil, nil},
		"always": {"the pause does not end by itself", "true", nil, nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, n := range nextOf(tt.paused, tt.conditions, tt.records, second(5).Time) {
				text := n.Text
				if !n.At.IsZero() {
					text = fmt.Sprintf("%d %s", n.At.Second(), text)
				}
				if n.Known == "" {
					t.Errorf("it is not said how %q is known", n.Text)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

// TestRecords: an operator is asked for the records of one object, by its UID. One that does not answer is said to be away.
func TestRecords(t *testing.T) {
	t.Parallel()
	operator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.RawQuery; got != "uid=u" {
			t.Errorf("asked for %s", got)
		}
		trace.JSON(w).Record(recorded(0, trace.End{Again: time.Second})[0])
	}))
	defer operator.Close()
	s := New(Options{Operator: inspect.Operator{URL: operator.URL}})
	records, err := s.records(t.Context(), model.Object{UID: "u"})
	if err != nil || len(records) != 1 || records[0].Event != (trace.End{Again: time.Second}) {
		t.Errorf("records %v, %v", records, err)
	}
	operator.Close()
	if _, err := s.records(t.Context(), model.Object{UID: "u"}); err == nil || !strings.Contains(err.Error(), operator.URL) {
		t.Errorf("an operator that is away: %v", err)
	}
	if records, err := New(Options{}).records(t.Context(), model.Object{UID: "u"}); !errors.Is(err, errUnknown) || records != nil {
		t.Errorf("without an operator: %v, %v", records, err)
	}
}
