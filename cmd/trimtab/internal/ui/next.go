package ui

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/trace"
)

// next is what comes next for an object; at a time, if that is known. Known says by what.
type next struct {
	Text  string      `json:"text"`
	At    metav1.Time `json:"at,omitzero"`
	Known string      `json:"known"`
}

// nextOf returns what comes next for an object, what is due first before the rest. It is empty if nothing tells.
func nextOf(paused string, conditions []metav1.Condition, records []trace.Record, now time.Time) []next {
	all := []next{}
	stalled := func(c metav1.Condition) bool {
		return c.Type == api.ConditionStalled && c.Status == metav1.ConditionTrue
	}
	if all = append(all, passesOf(records)...); len(all) == 0 && slices.ContainsFunc(conditions, stalled) {
		all = append(all, next{Text: "nothing is tried before something changes", Known: "condition Stalled"})
	}
	if until, err := time.Parse(time.RFC3339, strings.TrimSpace(paused)); err == nil && until.After(now) {
		all = append(all, next{Text: "the pause ends", At: metav1.NewTime(until), Known: "annotation " + api.AnnotationPaused})
	}
	slices.SortStableFunc(all, func(a, b next) int { return firstDue(a.At.Time, b.At.Time) })
	return all
}

// firstDue compares two times; a zero one comes last.
func firstDue(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return -a.Compare(b)
	}
	return a.Compare(b)
}

// passesOf returns which pass of each controller comes next.
func passesOf(records []trace.Record) (all []next) {
	by := map[string][]trace.Record{}
	for _, r := range records {
		by[r.Controller] = append(by[r.Controller], r)
	}
	for _, controller := range slices.Sorted(maps.Keys(by)) {
		n, known := passOf(by[controller])
		if !known {
			continue
		}
		if len(by) > 1 {
			n.Text = "controller " + controller + ": " + n.Text
		}
		all = append(all, n)
	}
	return all
}

// passOf returns which pass of a controller comes next, as far as the records of those before tell.
func passOf(records []trace.Record) (n next, known bool) {
	attempt := 0
	for _, r := range records {
		switch e := r.Event.(type) {
		case trace.Start:
			attempt = e.Attempt
			n = next{Text: fmt.Sprintf("pass %d runs; it is attempt %d", r.Pass, attempt+1)}
			if attempt == 0 {
				n.Text = fmt.Sprintf("pass %d runs", r.Pass)
			}
		case trace.End:
			n = next{Text: "the next pass, unless a change causes one before"}
			switch {
			case e.Outcome == "Removed":
				n.Text = "nothing: the object is gone"
			case e.Again == 0 && e.Err != "":
				n.Text = "nothing is tried before something changes"
			case e.Again == 0:
				n.Text = "nothing is due; a change causes the next pass"
			default:
				n.At = metav1.NewTime(r.Time.Add(e.Again))
				if e.Err != "" {
					n.Text = fmt.Sprintf("attempt %d, unless a change causes one before", attempt+2)
				}
			}
		case trace.Decision, trace.Call, trace.Drift, trace.Write, trace.Transition:
			continue
		}
		n.Known, known = fmt.Sprintf("flight recorder of the operator, pass %d", r.Pass), true
	}
	return n, known
}
