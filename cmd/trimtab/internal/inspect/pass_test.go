package inspect

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/trace"
)

// recorded is what a controller recorded of two passes, one of which is under way, and of one whose beginning was dropped.
func recorded() []trace.Record {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var all []trace.Record
	add := func(name string, pass uint64, e trace.Event) {
		at = at.Add(time.Second)
		all = append(all, trace.Record{Time: at, Controller: "c", Object: trace.Object{Kind: "Instance", Name: name}, Pass: pass, Event: e})
	}
	add("a", 1, trace.End{Outcome: "Done"})
	add("a", 2, trace.Start{Generation: 1})
	add("b", 3, trace.Start{Generation: 1})
	add("a", 2, trace.Decision{Rule: "D-13", Action: "create"})
	add("a", 2, trace.Call{Op: "create", Target: "i", Mutating: true, Err: "quota", Took: time.Second})
	add("a", 2, trace.Call{Op: "create", Target: "i", Mutating: true, Err: "quota", Took: 2 * time.Second})
	add("b", 3, trace.Transition{To: "Creating"})
	add("b", 3, trace.Call{Op: "observe", Target: "i"}) // changes nothing
	add("a", 2, trace.Transition{From: "Ready", To: "Creating"})
	add("a", 2, trace.Write{Verb: "apply", Subresource: "status", Fields: []string{"state"}, ResourceVersion: "7"})
	add("a", 2, trace.Write{Verb: "patch", Fields: []string{"metadata.finalizers"}})
	add("a", 2, trace.End{Outcome: "Fail", Took: time.Minute})
	add("a", 2, trace.Start{Generation: 2}) // of another process
	return all
}

// TestPasses: records of concurrent passes are kept apart, and so are passes of one number in two processes.
func TestPasses(t *testing.T) {
	t.Parallel()
	type summary struct {
		Name       string
		Number     uint64
		Records    int
		Start, End bool
		Changed    []string
	}
	want := []summary{
		{"a", 1, 1, false, true, nil},
		{"a", 2, 8, true, true, []string{"create i failed", "state Ready → Creating", "apply status", "patch object"}},
		{"b", 3, 3, true, false, []string{"state Creating"}},
		{"a", 2, 1, true, false, nil},
	}
	var got []summary
	for _, p := range Passes(recorded()) {
		_, start := p.Start()
		_, end := p.End()
		got = append(got, summary{p.Object.Name, p.Number, len(p.Records), start, end, p.Changed()})
		if len(p.Lines()) != len(p.Records) {
			t.Errorf("pass %d has %d records and %d lines", p.Number, len(p.Records), len(p.Lines()))
		}
		if !p.Began().Equal(p.Records[0].Time) {
			t.Errorf("pass %d began at %s", p.Number, p.Began())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestCompare: what differs only in time is no difference, and what is common stays in its place.
func TestCompare(t *testing.T) {
	t.Parallel()
	pass := func(took time.Duration, events ...trace.Event) Pass {
		p := Pass{Controller: "c", Object: trace.Object{Kind: "Instance", Name: "a"}}
		for i, e := range events {
			p.Records = append(p.Records, trace.Record{Time: time.Unix(int64(i), 0).Add(took), Controller: "c", Object: p.Object, Event: e})
		}
		return p
	}
	observe := func(took time.Duration) trace.Event {
		return trace.Call{Op: "observe", Target: "i", Result: "Available", Took: took}
	}
	first := pass(0, trace.Start{Generation: 1, ResourceVersion: "7"}, observe(1), trace.Decision{Rule: "D-20", Action: "keep"}, trace.End{Outcome: "Done", Took: 3})
	second := pass(5, trace.Start{Generation: 1, ResourceVersion: "9"}, observe(2), trace.Decision{Rule: "D-13", Action: "update"}, observe(4), trace.End{Outcome: "Done", Took: 8})
	want := []Line{
		{"=", "start    generation 1"},
		{"=", "observe  i -> Available"},
		{"-", "decide   D-20 keep"},
		{"+", "decide   D-13 update"},
		{"+", "observe  i -> Available"},
		{"=", "end      Done"},
	}
	if diff := cmp.Diff(want, Compare(first, second)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestCompareLong: a comparison of long passes is bounded, and loses no line.
func TestCompareLong(t *testing.T) {
	t.Parallel()
	pass := func(op string) Pass {
		p := Pass{Records: []trace.Record{{Event: trace.Start{Generation: 1}}}}
		for i := range 3000 {
			p.Records = append(p.Records, trace.Record{Event: trace.Call{Op: op, Target: strconv.Itoa(i)}}, trace.Record{Event: trace.Call{Op: "observe", Target: "i"}})
		}
		return p
	}
	count := map[string]int{}
	for _, line := range Compare(pass("create"), pass("delete")) {
		count[line.Sign]++
	}
	if diff := cmp.Diff(map[string]int{"=": 1, "-": 6000, "+": 6000}, count); diff != "" {
		t.Errorf("lines (-want +got)\n%s", diff)
	}
}
