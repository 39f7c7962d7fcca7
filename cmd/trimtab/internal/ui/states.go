package ui

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

// machine is the states of an object as they are drawn: those that it has been in and those that it usually goes through, in rows
// and columns, where it is now, and the transitions between them.
type machine struct {
	States []state `json:"states"`
	Edges  []edge  `json:"edges"`
	// Rows and Columns are how many there are.
	Rows    int `json:"rows"`
	Columns int `json:"columns"`
	// Limits says what is not known, or not drawn.
	Limits []string `json:"limits,omitempty"`
}

// state is a state of an object. Present: the object is in it, for Reason, since a time if that is known. Seen: it is or was in it.
type state struct {
	Name    string      `json:"name"`
	Row     int         `json:"row"`
	Column  int         `json:"column"`
	Present bool        `json:"present,omitempty"`
	Seen    bool        `json:"seen,omitempty"`
	Failure bool        `json:"failure,omitempty"`
	Reason  string      `json:"reason,omitempty"`
	Since   metav1.Time `json:"since,omitzero"`
}

// edge is a transition that was seen so many times, or a usual one that was not seen if that is 0.
type edge struct {
	From  string      `json:"from"`
	To    string      `json:"to"`
	Times int         `json:"times"`
	Last  metav1.Time `json:"last,omitzero"`
}

const (
	// abreast is how many states are drawn in a row, and most how many in all.
	abreast = 5
	most    = 15
)

// standing is what an object's status says.
type standing struct {
	State, Reason string
	Conditions    []metav1.Condition
}

// machineOf returns the states of an object, nil if neither its status nor its kind tells any. Moments are what has happened to it,
// in the order of time. Nothing is taken for a transition but what somebody has seen.
func machineOf(flow model.Flow, now standing, moments []model.Moment) *machine {
	present := cmp.Or(now.State, now.Reason)
	m := &machine{States: []state{}, Edges: []edge{}}
	seen := m.transitions(moments)
	if present != "" && !slices.Contains(seen, present) {
		seen = append(seen, present)
	}
	if slices.ContainsFunc(seen, func(name string) bool { return !slices.Contains(flow.States(), name) }) {
		flow = model.Flow{} // it is another operator's kind, with fields of the same names
	}
	if len(flow.Path) > 0 {
		for _, c := range now.Conditions { // those that are False were True before
			if slices.Contains(flow.Leave, c.Type) && !slices.Contains(seen, c.Type) {
				seen = append(seen, c.Type)
			}
		}
		m.usual(flow)
	}
	if len(seen)+len(flow.Path) == 0 {
		return nil
	}
	m.place(flow, seen, present)
	for i := range m.States {
		s := &m.States[i]
		s.Seen, s.Failure = slices.Contains(seen, s.Name), s.Name == flow.Failure
		if s.Name == present {
			s.be(now, entered(moments, present))
		}
	}
	if present == "" {
		m.Limits = append(m.Limits, "no operator has reported a state of it yet")
	}
	if !slices.ContainsFunc(m.Edges, func(e edge) bool { return e.Times > 0 }) {
		m.Limits = append(m.Limits, "no transition has been seen; neither its status nor a flight recorder tells of one")
	}
	if len(flow.Path) == 0 {
		m.Limits = append(m.Limits, "the other states of its kind are not known")
	}
	return m
}

// be makes a state the present one.
func (s *state) be(now standing, since metav1.Time) {
	s.Present, s.Since = true, since
	s.Failure = s.Failure || failed(now.Conditions)
	if now.Reason != s.Name {
		s.Reason = now.Reason
	}
}

// failed reports whether conditions say that something has failed.
func failed(conditions []metav1.Condition) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool {
		return (c.Type == api.ConditionFailed || c.Type == api.ConditionStalled) && c.Status == metav1.ConditionTrue
	})
}

// entered returns when an object came to its present state; zero if the last transition that was seen leads elsewhere.
func entered(moments []model.Moment, present string) metav1.Time {
	for _, moment := range slices.Backward(moments) {
		if moment.To == present {
			return moment.At
		}
		if moment.To != "" {
			break
		}
	}
	return metav1.Time{}
}

// transitions counts those that were seen, and returns the states in the order in which they were seen first.
func (m *machine) transitions(moments []model.Moment) (seen []string) {
	for _, moment := range moments {
		for _, name := range []string{moment.From, moment.To} {
			if name != "" && !slices.Contains(seen, name) {
				seen = append(seen, name)
			}
		}
		if moment.From == "" || moment.To == "" || moment.From == moment.To {
			continue
		}
		at := m.edge(moment.From, moment.To)
		m.Edges[at].Times++
		m.Edges[at].Last = moment.At
	}
	return seen
}

// edge returns where the transition between two states is, which is added if it is not there.
func (m *machine) edge(from, to string) int {
	at := slices.IndexFunc(m.Edges, func(e edge) bool { return e.From == from && e.To == to })
	if at < 0 {
		m.Edges = append(m.Edges, edge{From: from, To: to})
		at = len(m.Edges) - 1
	}
	return at
}

// usual adds the transitions of the path that were not seen. Where another way along the path was seen, the usual one is left out.
func (m *machine) usual(flow model.Flow) {
	along := slices.Concat(flow.Path, flow.Between)
	for i, to := range flow.Path[1:] {
		if !slices.ContainsFunc(m.Edges, func(e edge) bool { return e.To == to && e.Times > 0 && slices.Contains(along, e.From) }) {
			m.edge(flow.Path[i], to)
		}
	}
}

// place puts the path into the first row, and the other states that were seen below it, in the order of the flow.
func (m *machine) place(flow model.Flow, seen []string, present string) {
	var path []string
	if n := len(flow.Path) - 1; n > 0 {
		path = slices.DeleteFunc(slices.Concat(flow.Path[:n], flow.Between, flow.Path[n:]), func(name string) bool {
			return !slices.Contains(flow.Path, name) && !slices.Contains(seen, name)
		})
	}
	below := slices.DeleteFunc(slices.Clone(seen), func(name string) bool { return slices.Contains(path, name) })
	order := flow.States()
	slices.SortStableFunc(below, func(a, b string) int { return cmp.Compare(slices.Index(order, a), slices.Index(order, b)) })
	if len(below) > most { // the last ones, and where it is
		m.Limits = append(m.Limits, fmt.Sprintf("%d states are not drawn", len(below)-most))
		if at := slices.Index(below, present); at >= 0 {
			below = append(slices.Delete(below, at, at+1), present)
		}
		below = below[len(below)-most:]
	}
	for i, name := range path {
		m.States = append(m.States, state{Name: name, Column: i})
	}
	above := min(len(path), 1) // rows; a path is not longer than one
	for i, name := range below {
		m.States = append(m.States, state{Name: name, Row: above + i/abreast, Column: i % abreast})
	}
	m.Rows, m.Columns = m.States[len(m.States)-1].Row+1, min(abreast, max(len(path), len(below)))
	drawn := func(name string) bool {
		return slices.ContainsFunc(m.States, func(s state) bool { return s.Name == name })
	}
	m.Edges = slices.DeleteFunc(m.Edges, func(e edge) bool { return !drawn(e.From) || !drawn(e.To) })
}
