package ui

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/trace"
)

// answered is how long an operator is waited for: a page is also of use without what it says.
const answered = 2 * time.Second

// records returns what the flight recorder of the operator has about an object. It is errUnknown that nobody knows where that runs.
func (s *Server) records(ctx context.Context, o model.Object) ([]trace.Record, error) {
	switch {
	case !s.options.Operator.Known():
		return nil, errUnknown
	case o.UID == "":
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answered)
	defer cancel()
	return s.options.Operator.Trace(ctx, trace.Query{UID: string(o.UID)})
}

// lived adds to an object's history the transitions and failures that its operator has recorded. Where neither the object nor the
// operator keeps transitions, those between the readings of this server take their place.
func lived(h model.History, records []trace.Record, read []model.Moment) model.History {
	recorded := momentsOf(records)
	first := slices.IndexFunc(recorded, func(m model.Moment) bool { return m.To != "" })
	if first >= 0 {
		since := recorded[first].At
		h.Moments = slices.DeleteFunc(slices.Clone(h.Moments), func(m model.Moment) bool {
			return m.To != "" && (!m.At.Before(&since) || slices.ContainsFunc(recorded, func(r model.Moment) bool {
				return m.From == r.From && m.To == r.To && m.At.Unix() == r.At.Unix() // a history has seconds
			}))
		})
	}
	h.Moments = append(slices.Clone(h.Moments), recorded...)
	if !slices.ContainsFunc(h.Moments, func(m model.Moment) bool { return m.To != "" }) {
		h.Moments = append(h.Moments, read...)
	}
	slices.SortStableFunc(h.Moments, func(a, b model.Moment) int { return a.At.Compare(b.At.Time) })
	return h
}

// momentsOf returns the transitions and the failed passes of records.
func momentsOf(records []trace.Record) (all []model.Moment) {
	attempts := map[string]int{}
	for _, r := range records {
		m := model.Moment{At: metav1.NewTime(r.Time), By: r.Controller}
		switch e := r.Event.(type) {
		case trace.Start:
			attempts[r.Controller] = e.Attempt
			continue
		case trace.Transition:
			m.What, m.From, m.To, m.Text = "state", e.From, e.To, e.To
			if e.From != "" {
				m.Text = e.From + " → " + e.To
			}
			if e.Message != "" {
				m.Text += ": " + e.Message
			}
		case trace.End:
			if e.Err == "" {
				continue
			}
			m.What, m.Text = "attempt", fmt.Sprintf("pass %d, attempt %d: %s", r.Pass, attempts[r.Controller]+1, e.Err)
		case trace.Decision, trace.Call, trace.Drift, trace.Write:
			continue
		}
		all = append(all, m)
	}
	return all
}
