package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/trace"
)

// line is a row in words: spans as from-to, and marks as their second, bad ones with !.
func (r row) line() string {
	words := []string{r.Name + ":"}
	for _, s := range r.Spans {
		to := "now"
		if !s.To.IsZero() {
			to = fmt.Sprint(s.To.Second())
		}
		words = append(words, strings.TrimSpace(fmt.Sprintf("%d-%s %s %s", s.From.Second(), to, s.Text, s.Tone))+";")
	}
	for _, m := range r.Marks {
		word := fmt.Sprint(m.At.Second())
		if m.Bad {
			word += "!"
		}
		words = append(words, word)
	}
	return strings.TrimSuffix(strings.Join(words, " "), ";")
}

func TestAxis(t *testing.T) {
	t.Parallel()
	moment := func(at int, what string) model.Moment { return model.Moment{At: second(at), What: what, Text: what} }
	child := func(name string, ready metav1.ConditionStatus, since int) model.Object {
		return model.Object{Ref: model.Ref{Kind: "Child", Name: name}, Ready: ready, Reason: "Why", Since: second(since), Created: second(1)}
	}
	failedNow := machineOf(externalFlow, standing{State: "Failed"}, nil)
	tests := map[string]struct {
		why     string
		o       model.Object
		m       *machine
		moments []model.Moment
		records []trace.Record
		want    []string
	}{
		"states": {
			"each lasts until the next, and the last one until now, as the object is in it",
			model.Object{},
			failedNow,
			moved("Pending > Creating", "Creating > Failed"), nil,
			[]string{"state: 0-1 Creating; 1-now Failed bad"},
		},
		"moved on": {
			"how long it was in the last state that was seen is not known",
			model.Object{},
			failedNow, moved("Pending > Creating"), nil,
			[]string{"state: 0-0 Creating"},
		},
		"marks": {
			"each moment is in the row of its series, and only attempts are bad",
			model.Object{},
			nil,
			[]model.Moment{moment(1, "created"), moment(2, "spec"), moment(3, "metadata"), moment(4, "attempt"), moment(5, "condition"), moment(6, "event"), moment(7, "operator"), moment(8, "deleted")},
			nil,
			[]string{"spec: 1 2 8", "attempts: 4!", "conditions: 5", "events: 6", "operator: 7-now operator"},
		},
		"records": {
			"calls that change something or failed, and passes; a failed pass is a moment already",
			model.Object{},
			nil,
			[]model.Moment{moment(3, "attempt")},
			recorded(0, trace.Call{Op: "observe"}, trace.Call{Op: "create", Mutating: true}, trace.Call{Op: "observe", Err: "away"}, trace.End{Err: "away"}, trace.End{Outcome: "Done"}),
			[]string{"attempts: 3! 4", "external: 1 2!"},
		},
		"objects": {
			"what is not ready comes first; an external resource and what has no times have no row",
			model.Object{Ready: "Unknown", Reason: "Waiting", Since: second(5), Objects: []model.Object{
				{Ref: model.Ref{Kind: "external", Name: "i-1"}, Relation: "external", Created: second(1)},
				child("fine", "True", 3),
				{Ref: model.Ref{Kind: "Child", Name: "timeless"}},
				{Ref: model.Ref{Kind: "Child", Name: "data"}, Created: second(2), Objects: []model.Object{child("broken", "False", 4)}},
			}},
			nil, nil, nil,
			[]string{"Ready: 5-now Unknown (Waiting) wait", "Child broken: 4-now False (Why) bad; 1", "Child fine: 3-now True (Why) good; 1", "Child data: 2"},
		},
		"nothing": {"no row is empty", model.Object{}, nil, nil, nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range axisOf(tt.o, tt.m, tt.moments, tt.records, second(9).Time).Rows {
				got = append(got, r.line())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
	many := model.Object{}
	for i := range shownBelow + 3 {
		many.Objects = append(many.Objects, child(fmt.Sprint(i), "True", 1))
	}
	if a := axisOf(many, nil, nil, nil, second(9).Time); len(a.Rows) != shownBelow || a.Left != 3 {
		t.Errorf("%d rows and %d left, want %d and 3", len(a.Rows), a.Left, shownBelow)
	}
}

// TestWindows: the first one shown is the shortest that has half of what has happened.
func TestWindows(t *testing.T) {
	t.Parallel()
	now := second(0).Time
	tests := map[string]struct {
		why  string
		ages []time.Duration
		want string
	}{
		"young":   {"all of it is shorter than any window", []time.Duration{time.Minute}, "[all]"},
		"nothing": {"there is nothing to see", nil, "[all]"},
		"recent":  {"three of four are of the last minutes", []time.Duration{50 * time.Hour, time.Minute, time.Minute, time.Second}, "[10 minutes] 1 hour 6 hours 1 day all"},
		"half":    {"two of four are of the last hour", []time.Duration{50 * time.Hour, 40 * time.Hour, time.Hour, time.Second}, "10 minutes [1 hour] 6 hours 1 day all"},
		"old":     {"most of it is older than any window", []time.Duration{9000 * time.Hour, 8999 * time.Hour, time.Second}, "10 minutes 1 hour 6 hours 1 day 7 days 30 days [all]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var a axis
			var moments []model.Moment
			for _, age := range tt.ages {
				moments = append(moments, model.Moment{At: metav1.NewTime(now.Add(-age))})
			}
			a.fit(moments, now)
			var got []string
			for i, w := range a.Windows {
				if i == a.Shown {
					w.Name = "[" + w.Name + "]"
				}
				got = append(got, w.Name)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%q, want %q: %s", got, tt.want, tt.why)
			}
		})
	}
}
