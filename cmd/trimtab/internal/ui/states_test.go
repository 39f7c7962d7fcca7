package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

var externalFlow = model.Flow{
	Path: []string{"Pending", "Creating", "Succeeded"}, Between: []string{"Verifying", "Completing"},
	Failure: "Failed", Others: []string{"Updating", "Terminating"}, Leave: []string{"Creating", "Failed"},
}

// second is a time so many seconds after an hour.
func second(n int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second))
}

// moved are transitions, a second apart, written as "A > B".
func moved(transitions ...string) (all []model.Moment) {
	for i, t := range transitions {
		from, to, _ := strings.Cut(t, " > ")
		all = append(all, model.Moment{At: second(i), What: "state", From: from, To: to})
	}
	return all
}

// drawn is a machine in lines: the states of each row, with + if seen, ! if it is a failure, * if it is the present one, and the
// transitions.
func drawn(m *machine) string {
	if m == nil {
		return "nothing"
	}
	rows := slices.Repeat([]string{""}, m.Rows)
	for _, s := range m.States {
		text := s.Name
		if s.Seen && !s.Present {
			text += "+"
		}
		if s.Failure {
			text += "!"
		}
		if s.Present {
			text += "*" + s.Reason
		}
		if !s.Since.IsZero() {
			text += fmt.Sprintf("@%d", s.Since.Second())
		}
		rows[s.Row] = strings.TrimSpace(rows[s.Row] + " " + text)
	}
	for _, e := range m.Edges {
		text := fmt.Sprintf("%s > %s", e.From, e.To)
		if e.Times == 0 {
			text += " usual"
		} else {
			text += fmt.Sprintf(" %dx@%d", e.Times, e.Last.Second())
		}
		rows = append(rows, text)
	}
	return strings.Join(append(rows, m.Limits...), "\n")
}

// TestMachine: the path of the kind is drawn, the states that were seen, where the object is, and no transition that nobody saw.
func TestMachine(t *testing.T) {
	t.Parallel()
	const unseen = "no transition has been seen; neither its status nor a flight recorder tells of one"
	const unknown = "the other states of its kind are not known"
	condition := func(kind string, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status}}
	}
	tests := map[string]struct {
		why     string
		flow    model.Flow
		now     standing
		moments []model.Moment
		want    []string
	}{
		"only now": {
			"the path is what is usual, and nothing else is claimed", externalFlow,
			standing{State: "Creating", Reason: "Creating"},
			nil,
			[]string{"Pending Creating* Succeeded", "Pending > Creating usual", "Creating > Succeeded usual", unseen},
		},
		"seen": {
			"what was seen takes the place of what is usual, and times are counted", externalFlow,
			standing{State: "Failed", Reason: "CreateFailed"},
			moved("Pending > Creating", "Creating > Failed", "Failed > Creating", "Creating > Failed"),
			[]string{
				"Pending+ Creating+ Succeeded", "Failed!*CreateFailed@3",
				"Pending > Creating 1x@0", "Creating > Failed 2x@3", "Failed > Creating 1x@2", "Creating > Succeeded usual",
			},
		},
		"from a failure": {
			"a way to a state from outside the path does not replace the usual one", externalFlow,
			standing{State: "Creating"},
			moved("Failed > Creating"),
			[]string{"Pending Creating*@0 Succeeded", "Failed+!", "Failed > Creating 1x@0", "Pending > Creating usual", "Creating > Succeeded usual"},
		},
		"another way": {
			"the usual way to a state is not drawn beside one that was seen", externalFlow,
			standing{State: "Succeeded", Reason: "Available"},
			moved("Pending > Creating", "Creating > Verifying", "Verifying > Succeeded"),
			[]string{"Pending+ Creating+ Verifying+ Succeeded*Available@2", "Pending > Creating 1x@0", "Creating > Verifying 1x@1", "Verifying > Succeeded 1x@2"},
		},
		"conditions": {
			"the conditions Creating and Failed stay, so it was in these states; that of Updating says nothing", externalFlow,
			standing{State: "Succeeded", Conditions: append(condition("Failed", "False"), condition("Updating", "False")...)},
			nil,
			[]string{"Pending Creating Succeeded*", "Failed+!", "Pending > Creating usual", "Creating > Succeeded usual", unseen},
		},
		"moved on": {
			"the last transition that was seen leads elsewhere, so it is not known since when it is there", externalFlow,
			standing{State: "Updating"},
			moved("Creating > Succeeded", "Succeeded > Updating", "Updating > Succeeded"),
			[]string{"Pending Creating+ Succeeded+", "Updating*", "Creating > Succeeded 1x@0", "Succeeded > Updating 1x@1", "Updating > Succeeded 1x@2", "Pending > Creating usual"},
		},
		"stalled": {
			"a condition tells of a failure where the state does not",
			model.Flow{},
			standing{State: "Stuck", Conditions: condition("Stalled", "True")},
			nil,
			[]string{"Stuck!*", unseen, unknown},
		},
		"another kind": {
			"a state that trimtab does not have: the path is not that of the kind", externalFlow,
			standing{State: "Blue"},
			moved("Green > Blue"),
			[]string{"Green+ Blue*@0", "Green > Blue 1x@0", unknown},
		},
		"new": {
			"no operator has seen it", externalFlow,
			standing{},
			nil,
			[]string{"Pending Creating Succeeded", "Pending > Creating usual", "Creating > Succeeded usual", "no operator has reported a state of it yet", unseen},
		},
		"reason": {"an object without a state has a reason", model.Flow{}, standing{Reason: "Degraded"}, nil, []string{"Degraded*", unseen, unknown}},
		"silent": {"a ConfigMap has none", model.Flow{}, standing{}, nil, []string{"nothing"}},
		"many": {
			"five in a row, and not more than can be looked at",
			model.Flow{},
			standing{State: "s1"},
			moved("s1 > s2", "s3 > s4", "s5 > s6", "s7 > s8", "s9 > s10", "s11 > s12", "s13 > s14", "s15 > s16", "s17 > s1"),
			[]string{
				"s4+ s5+ s6+ s7+ s8+", "s9+ s10+ s11+ s12+ s13+", "s14+ s15+ s16+ s17+ s1*@8",
				"s5 > s6 1x@2", "s7 > s8 1x@3", "s9 > s10 1x@4", "s11 > s12 1x@5", "s13 > s14 1x@6", "s15 > s16 1x@7", "s17 > s1 1x@8",
				"2 states are not drawn", unknown,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Join(tt.want, "\n"), drawn(machineOf(tt.flow, tt.now, tt.moments))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}
