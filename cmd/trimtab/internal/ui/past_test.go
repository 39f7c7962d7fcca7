package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/trace"
)

// recorded are records, a second apart, from second at on.
func recorded(at int, events ...trace.Event) (all []trace.Record) {
	for i, e := range events {
		all = append(all, trace.Record{Time: second(at + i).Time, Controller: "c", Pass: 7, Event: e})
	}
	return all
}

// TestLived: what the operator has recorded is taken before what the status keeps, and that before what was read.
func TestLived(t *testing.T) {
	t.Parallel()
	records := recorded(2, trace.Start{Attempt: 2}, trace.Transition{From: "B", To: "C", Message: "why"}, trace.Call{Op: "create"}, trace.End{Err: "refused"}, trace.End{})
	tests := map[string]struct {
		why     string
		moments []model.Moment
		records []trace.Record
		read    []model.Moment
		want    []string
	}{
		"read":    {"nobody else tells", []model.Moment{{At: second(1), What: "created"}}, nil, moved("A > B"), []string{"0 state A > B", "1 created"}},
		"kept":    {"the status has them all", moved("A > B"), nil, moved("A > X"), []string{"0 state A > B"}},
		"seconds": {"the status has whole seconds: of two entries that are as old as the first record, one is this record", moved("A > B", "B > C"), []trace.Record{{Time: second(1).Add(400 * time.Millisecond), Event: trace.Transition{From: "B", To: "C"}}}, nil, []string{"0 state A > B", "1 state B > C"}},
		"two": {
			"each controller has its own attempts", moved("A > B"), slices.Concat(byAnother(recorded(0, trace.Start{Attempt: 4})), recorded(1, trace.Start{}), byAnother(recorded(2, trace.End{Err: "refused"}))),
			nil,
			[]string{"0 state A > B", "2 attempt pass 7, attempt 5: refused"},
		},
		"recorded": {"the status is older, the records have the rest, and an attempt that failed", moved("A > B", "X > Y", "X > Z", "B > C"), records, moved("A > C"), []string{"0 state A > B", "1 state X > Y", "2 state X > Z", "3 state B > C", "5 attempt pass 7, attempt 3: refused"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, m := range lived(model.History{Moments: tt.moments}, tt.records, tt.read).Moments {
				text := fmt.Sprintf("%d %s", m.At.Second(), m.What)
				if m.To != "" {
					text += " " + m.From + " > " + m.To
				} else if m.Text != "" {
					text += " " + m.Text
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

// TestNobodyLooked: a change while nobody looked has no time, and what was read before says nothing about now.
func TestNobodyLooked(t *testing.T) {
	t.Parallel()
	var r readings
	r.note("u", "A", second(0).Time)
	r.note("u", "B", second(1).Time)
	if changes := r.note("u", "C", second(1).Add(apart)); len(changes) != 2 {
		t.Errorf("changes %v, want those of a page that somebody looks at", changes)
	}
	if changes := r.note("u", "D", second(2).Add(2*apart)); len(changes) > 0 {
		t.Errorf("changes %v, want none", changes)
	}
	if changes := r.note("u", "E", second(3).Add(2*apart)); len(changes) != 1 {
		t.Errorf("changes %v, want the one that was seen since", changes)
	}
}

// TestReadings: a change between two readings is noted once; what was not read for longest is forgotten.
func TestReadings(t *testing.T) {
	t.Parallel()
	var r readings
	var got []string
	for i, state := range []string{"A", "A", "B", "", "A"} {
		changes := r.note("u", state, second(i).Time)
		got = got[:0]
		for _, c := range changes {
			got = append(got, fmt.Sprintf("%s > %s @%d", c.From, c.To, c.At.Second()))
		}
	}
	if diff := cmp.Diff([]string{"A > B @2", "B > A @4"}, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	for i := range 3 * kept {
		r.note("u", strings.Repeat("x", i+1), second(5+i).Time)
	}
	if n := len(r.note("u", "end", second(5+3*kept).Time)); n != kept {
		t.Errorf("%d changes of an object are kept, want %d", n, kept)
	}
	for i := range remembered + 1 {
		r.note(types.UID(fmt.Sprint(i)), "A", second(2000+i).Time)
	}
	if len(r.of) != remembered {
		t.Errorf("%d objects are remembered, want %d", len(r.of), remembered)
	}
	if changes := r.note("u", "B", time.Time{}); len(changes) > 0 || !slices.Contains([]string{"A"}, r.of["500"].state) {
		t.Errorf("the object that was not read for longest has changes %v", changes)
	}
}
