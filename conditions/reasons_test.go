package conditions_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/conditions"
)

var reasons = conditions.Reasons{
	"NoSecret":      {Remedy: "create it, or change spec.secretName"},
	"Retrying":      {Severity: conditions.Warning},
	"JobRequested":  {Severity: conditions.Info},
	"InputRequired": {Severity: conditions.Info, Remedy: "set spec.input"},
}

// at returns a condition that changed some minutes after noon.
func at(minute int, t, status, reason string) metav1.Condition {
	return metav1.Condition{
		Type: t, Status: metav1.ConditionStatus(status), Reason: reason, Message: strings.ToLower(reason), ObservedGeneration: 2,
		LastTransitionTime: metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute)),
	}
}

func TestMirror(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why      string
		children [][]metav1.Condition
		want     string
	}{
		"nothing":        {why: "who depends on nothing waits for nothing", want: "True Ready"},
		"silent":         {why: "a new child has no status", children: [][]metav1.Condition{nil}, want: "Unknown NotReported"},
		"ready":          {why: "Ready is the child's own summary", children: [][]metav1.Condition{{at(1, "Ready", "True", "Up"), at(9, "Db", "False", "NoSecret")}}, want: "True Up"},
		"error first":    {why: "the worst group", children: [][]metav1.Condition{{at(9, "A", "False", "JobRequested"), at(5, "B", "False", "Retrying"), at(1, "C", "False", "NoSecret")}}, want: "False NoSecret"},
		"warning second": {why: "the worst group", children: [][]metav1.Condition{{at(9, "A", "False", "JobRequested"), at(5, "B", "False", "Retrying"), at(1, "C", "Unknown", "X")}}, want: "False Retrying"},
		"info third":     {why: "the worst group", children: [][]metav1.Condition{{at(1, "A", "False", "JobRequested"), at(5, "B", "Unknown", "X"), at(9, "C", "True", "Y")}}, want: "False JobRequested"},
		"unknown":        {why: "what is not known is not ready, whatever else is True", children: [][]metav1.Condition{{at(1, "Ready", "Unknown", "X"), at(9, "Input", "True", "Y")}}, want: "Unknown X"},
		"no Ready":       {why: "that a part is there says nothing of the whole", children: [][]metav1.Condition{{at(9, "Input", "True", "Y")}}, want: "Unknown Y"},
		"latest":         {why: "in a group the latest is the news", children: [][]metav1.Condition{{at(1, "Z", "False", "Other"), at(2, "Y", "False", "NoSecret")}}, want: "False NoSecret"},
		"stalled":        {why: "some types are bad when they are True", children: [][]metav1.Condition{{at(1, "Stalled", "True", "Broken"), at(2, "Ready", "False", "Retrying")}}, want: "False Broken"},
		"reconciling":    {why: "and some are harmless", children: [][]metav1.Condition{{at(9, "Reconciling", "True", "Progressing"), at(2, "Ready", "False", "Retrying")}}, want: "False Retrying"},
		"not failed":     {why: "nor is False bad then", children: [][]metav1.Condition{{at(9, "Failed", "False", "Fine"), at(2, "Ready", "Unknown", "X")}}, want: "Unknown X"},
		"our own":        {why: "who waits needs nobody to act", children: [][]metav1.Condition{{at(9, "Ready", "False", "Waiting")}, {at(1, "Ready", "False", "Retrying")}}, want: "False Retrying"},
		"our failure":    {why: "it is tried again", children: [][]metav1.Condition{{at(9, "Ready", "False", "ReconcileFailed")}, {at(1, "Ready", "False", "NoSecret")}}, want: "False NoSecret"},
		"gave up":        {why: "and then no more", children: [][]metav1.Condition{{at(1, "Ready", "False", "ReconcileFailed"), at(1, "Stalled", "True", "ReconcileFailed")}, {at(9, "Ready", "False", "Retrying")}}, want: "False ReconcileFailed"},
		"degraded":       {why: "a type of others that is bad when it is True", children: [][]metav1.Condition{{at(1, "Degraded", "True", "NoDisk"), at(2, "Ready", "False", "Retrying")}}, want: "False NoDisk"},
		"undegraded":     {why: "and fine when it is False", children: [][]metav1.Condition{{at(9, "Degraded", "False", "NoDisk"), at(2, "Ready", "False", "Retrying")}}, want: "False Retrying"},
		"worst child": {why: "one child keeps the parent from being ready", children: [][]metav1.Condition{
			{at(9, "Ready", "True", "Up")}, {at(1, "Ready", "False", "Retrying")}, {at(2, "Ready", "Unknown", "X")},
		}, want: "False Retrying"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var children []conditions.Child
			for _, list := range tc.children {
				children = append(children, conditions.Child{Generation: 2, Conditions: list, BadWhenTrue: []string{"Degraded"}})
			}
			got := reasons.Mirror("DependenciesReady", children...)
			if diff := cmp.Diff("DependenciesReady "+tc.want, got.Type+" "+string(got.Status)+" "+got.Reason); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
	stale := reasons.Mirror("DependenciesReady", conditions.Child{Name: "Db a", Generation: 3, Conditions: []metav1.Condition{at(1, "Ready", "True", "Up")}})
	if want := (metav1.Condition{Type: "DependenciesReady", Status: "Unknown", Reason: "OutOfDate", Message: "Db a: it has not reported on its present spec yet"}); stale != want {
		t.Errorf("Ready of an earlier generation is mirrored as %+v, want %+v", stale, want)
	}
}

// TestMirrorObserved: a Ready without a generation of its own is about that of the status.
func TestMirrorObserved(t *testing.T) {
	t.Parallel()
	ready := at(1, "Ready", "True", "Up")
	ready.ObservedGeneration = 0
	for observed, want := range map[int64]metav1.ConditionStatus{0: "True", 2: "Unknown", 3: "True"} {
		child := conditions.Child{Generation: 3, ObservedGeneration: observed, Conditions: []metav1.Condition{ready}}
		if got := reasons.Mirror("DependenciesReady", child); got.Status != want {
			t.Errorf("of a status about generation %d: %s, want %s", observed, got.Status, want)
		}
	}
	ready.ObservedGeneration = 3
	child := conditions.Child{Generation: 3, ObservedGeneration: 2, Conditions: []metav1.Condition{ready}}
	if got := reasons.Mirror("DependenciesReady", child); got.Status != "True" {
		t.Errorf("its own generation does not count: %+v", got)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why  string
		list []metav1.Condition
		want string
	}{
		"nothing":  {why: "at the start", want: "Unknown NotReported"},
		"itself":   {why: "the last summary is no part of the next", list: []metav1.Condition{at(9, "Ready", "False", "NoSecret"), at(1, "A", "True", "Up")}, want: "True Up"},
		"all":      {why: "the latest is the news", list: []metav1.Condition{at(1, "A", "True", "Up"), at(2, "B", "True", "Bound")}, want: "True Bound"},
		"one":      {why: "one is enough", list: []metav1.Condition{at(9, "A", "True", "Up"), at(2, "B", "Unknown", "X")}, want: "Unknown X"},
		"not bad":  {why: "Failed=False is as it should be", list: []metav1.Condition{at(1, "A", "True", "Up"), at(2, "Failed", "False", "Fine")}, want: "True Fine"},
		"degraded": {why: "a type that the caller names", list: []metav1.Condition{at(1, "A", "True", "Up"), at(2, "Degraded", "True", "NoDisk")}, want: "False NoDisk"},
		"severity": {why: "the worst", list: []metav1.Condition{at(9, "A", "False", "Retrying"), at(2, "B", "False", "NoSecret")}, want: "False NoSecret"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := reasons.Summary("Ready", tc.list, "Degraded")
			if diff := cmp.Diff("Ready "+tc.want, got.Type+" "+string(got.Status)+" "+got.Reason); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

func TestReasonsCheck(t *testing.T) {
	t.Parallel()
	if err := reasons.Check(); err != nil {
		t.Error(err)
	}
	tests := map[string]struct {
		why    string
		reason conditions.Reason
		want   string
	}{
		"not camel":    {why: "the API server refuses it", want: "CamelCase"},
		"Broken":       {why: "an error leaves users alone", want: "Remedy"},
		"DbFailed":     {why: "a failure is no progress", reason: conditions.Reason{Severity: conditions.Info}, want: "failed"},
		"JobRequested": {why: "what was asked for is no trouble", reason: conditions.Reason{Severity: conditions.Warning}, want: "make it an Info"},
		"Odd":          {why: "there are three", reason: conditions.Reason{Severity: 7}, want: "Severity(7)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := conditions.Reasons{name: tc.reason}.Check()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v does not speak of %q", tc.why, err, tc.want)
			}
		})
	}
}
