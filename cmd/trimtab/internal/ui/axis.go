package ui

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/trace"
)

// axis is what has happened to an object and to what it is made of, from the first moment that is known until now.
type axis struct {
	From metav1.Time `json:"from"`
	// Windows are the times before now that can be looked at, the shortest first. Shown is the one to begin with.
	Windows []window `json:"windows"`
	Shown   int      `json:"shown"`
	Rows    []row    `json:"rows"`
	// Left is how many objects that it is made of have no row.
	Left int `json:"left,omitempty"`
}

// window is so many seconds before now; all that is known if there are none.
type window struct {
	Name    string `json:"name"`
	Seconds int    `json:"seconds,omitempty"`
}

// row is a series of an axis.
type row struct {
	Name  string `json:"name"`
	Spans []span `json:"spans,omitempty"`
	Marks []mark `json:"marks,omitempty"`
}

// span is how something was for some time; until now if To is zero. Tone is empty if that is neither good nor bad.
type span struct {
	From metav1.Time `json:"from"`
	To   metav1.Time `json:"to,omitzero"`
	Text string      `json:"text"`
	Tone tone        `json:"tone,omitempty"`
}

// mark is something that happened at a time.
type mark struct {
	At   metav1.Time `json:"at"`
	Text string      `json:"text"`
	Bad  bool        `json:"bad,omitempty"`
}

// seriesOf returns the rows of moments that are marks, and of the operator's work. Transitions are spans.
func seriesOf(moments []model.Moment, records []trace.Record) []row {
	called, passed := workOf(records)
	of := func(whats ...string) (marks []mark) {
		for _, m := range moments {
			if slices.Contains(whats, m.What) {
				marks = append(marks, mark{m.At, m.Text, m.What == "attempt"})
			}
		}
		return marks
	}
	return []row{
		{Name: "spec", Marks: of("created", "spec", "deleted")},
		{Name: "attempts", Marks: append(of("attempt"), passed...)},
		{Name: "external", Marks: called},
		{Name: "conditions", Marks: of("condition")},
		{Name: "events", Marks: of("event")},
	}
}

// shownBelow is how many of the objects that an object is made of have a row.
const shownBelow = 8

// axisOf draws what has happened to an object, its tree, until now.
func axisOf(o model.Object, m *machine, moments []model.Moment, records []trace.Record, now time.Time) axis {
	a := axis{Rows: []row{{Name: "state", Spans: statesOf(m, moments)}}}
	if s := readyOf(o); s != nil {
		a.Rows = append(a.Rows, row{Name: "Ready", Spans: []span{*s}})
	}
	a.Rows = append(a.Rows, seriesOf(moments, records)...)
	a.Rows = append(a.Rows, leadersOf(moments))
	below := slices.DeleteFunc(flat(o.Objects), func(o model.Object) bool { return o.Created.IsZero() })
	slices.SortStableFunc(below, func(a, b model.Object) int { return cmp.Compare(badness(a), badness(b)) })
	a.Left = max(0, len(below)-shownBelow)
	for _, o := range below[:min(len(below), shownBelow)] {
		a.Rows = append(a.Rows, rowOf(o))
	}
	a.Rows = slices.DeleteFunc(a.Rows, func(r row) bool { return len(r.Spans)+len(r.Marks) == 0 })
	a.fit(moments, now)
	return a
}

// statesOf returns the states in which an object was. When a state was left that is not followed by another one is known only if
// the object is in it now.
func statesOf(m *machine, moments []model.Moment) (all []span) {
	how := map[string]tone{}
	present := ""
	if m != nil {
		for _, s := range m.States {
			if s.Failure {
				how[s.Name] = bad
			}
			if s.Present {
				present = s.Name
			}
		}
	}
	for _, moment := range moments {
		if moment.To == "" {
			continue
		}
		if n := len(all); n > 0 {
			all[n-1].To = moment.At
		}
		all = append(all, span{From: moment.At, Text: moment.To, Tone: how[moment.To]})
	}
	if n := len(all); n > 0 && all[n-1].Text != present {
		all[n-1].To = all[n-1].From
	}
	return all
}

// readyOf returns since when an object is as ready as it is; nil if that is not known.
func readyOf(o model.Object) *span {
	if o.Since.IsZero() || o.Ready == "" {
		return nil
	}
	how := map[metav1.ConditionStatus]tone{metav1.ConditionTrue: good, metav1.ConditionFalse: bad}[o.Ready]
	return &span{From: o.Since, Text: fmt.Sprintf("%s (%s)", o.Ready, cmp.Or(o.Reason, o.State)), Tone: cmp.Or(how, wait)}
}

// rowOf is the row of an object that another one is made of.
func rowOf(o model.Object) row {
	r := row{Name: o.Kind + " " + o.Name}
	if s := readyOf(o); s != nil {
		r.Spans = []span{*s}
	}
	if !o.Created.IsZero() {
		r.Marks = []mark{{At: o.Created, Text: "it was created"}}
	}
	return r
}

// leadersOf is the row of the process that leads.
func leadersOf(moments []model.Moment) row {
	r := row{Name: "operator"}
	for _, m := range moments {
		if m.What == "operator" {
			r.Spans = append(r.Spans, span{From: m.At, Text: m.Text})
		}
	}
	return r
}

// workOf returns the calls to an external API that change something or failed, and the passes that did not fail.
func workOf(records []trace.Record) (called, passed []mark) {
	for _, r := range records {
		at := metav1.NewTime(r.Time)
		switch e := r.Event.(type) {
		case trace.Call:
			if e.Mutating || e.Err != "" {
				called = append(called, mark{at, e.Op + " " + e.Target + ": " + cmp.Or(e.Err, e.Result, "done"), e.Err != ""})
			}
		case trace.End:
			if e.Err == "" {
				passed = append(passed, mark{At: at, Text: fmt.Sprintf("pass %d: %s", r.Pass, e.Outcome)})
			}
		case trace.Start, trace.Decision, trace.Drift, trace.Write, trace.Transition:
		}
	}
	return called, passed
}

// flat returns all objects of trees.
func flat(trees []model.Object) (all []model.Object) {
	for _, o := range trees {
		if o.Relation != "external" {
			all = append(all, o)
		}
		all = append(all, flat(o.Objects)...)
	}
	return all
}

// badness orders what is not ready before what is, and what has nothing to be ready last.
func badness(o model.Object) int {
	return slices.Index([]metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown, metav1.ConditionTrue, ""}, o.Ready)
}

// fit offers windows that are shorter than the whole axis, and begins with the shortest one that has half of what has happened.
func (a *axis) fit(moments []model.Moment, now time.Time) {
	a.From = metav1.NewTime(now)
	for _, m := range moments {
		if m.At.Before(&a.From) && !m.At.IsZero() {
			a.From = m.At
		}
	}
	const day = 24 * time.Hour
	a.Shown = -1
	for _, w := range []struct {
		name string
		long time.Duration
	}{{"10 minutes", 10 * time.Minute}, {"1 hour", time.Hour}, {"6 hours", 6 * time.Hour}, {"1 day", day}, {"7 days", 7 * day}, {"30 days", 30 * day}} {
		if now.Sub(a.From.Time) <= w.long {
			break
		}
		a.Windows = append(a.Windows, window{w.name, int(w.long.Seconds())})
		in := 0
		for _, m := range moments {
			if now.Sub(m.At.Time) <= w.long {
				in++
			}
		}
		if a.Shown < 0 && 2*in >= len(moments) {
			a.Shown = len(a.Windows) - 1
		}
	}
	a.Windows = append(a.Windows, window{Name: "all"})
	if a.Shown < 0 {
		a.Shown = len(a.Windows) - 1
	}
}
