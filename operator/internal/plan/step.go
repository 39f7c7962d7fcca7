package plan

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/trimtab-dev/trimtab/trace"
)

// Step is something that the pass would do, or that it found out.
type Step struct {
	// Verb is create, update, delete or unchanged for Kubernetes objects, call for a call of another system that was held
	// back, read for one that was made, and decision for a decision.
	Verb string `json:"verb"`
	// Object is KIND/NAME or KIND/NAMESPACE/NAME of a Kubernetes object, or the target of a call.
	Object string `json:"object,omitempty"`
	// Subresource is what part of the object is written; empty for the object itself.
	Subresource string `json:"subresource,omitempty"`
	// Op is the operation of a call, or the action of a decision.
	Op string `json:"op,omitempty"`
	// Rule is the row of the decision table; see docs/decisions.md.
	Rule string `json:"rule,omitempty"`
	// Why is the reason for a decision, or the answer to a read.
	Why string `json:"why,omitempty"`
	// Fields are the differences.
	Fields []Difference `json:"fields,omitempty"`
	// Error is why the API server would refuse the write, or why a read failed.
	Error string `json:"error,omitempty"`

	// own: it is a write of the object of the pass.
	own bool
}

// Difference is a field that would change.
type Difference struct {
	Path string `json:"path"`
	// From and To are its values as JSON; empty if there is none. Values of Secrets are not shown.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Effect is that of a difference of an external resource.
	Effect string `json:"effect,omitempty"`
}

// changes reports whether the step would change anything but the status of the object of the pass.
func (s Step) changes() bool {
	switch s.Verb {
	case verbCreate, verbDelete, verbCall:
		return true
	case verbUpdate:
		return !s.own || s.Subresource == ""
	}
	return false
}

const (
	verbCreate    = "create"
	verbUpdate    = "update"
	verbDelete    = "delete"
	verbUnchanged = "unchanged"
	verbCall      = "call"
	verbRead      = "read"
	verbDecision  = "decision"
)

// log collects the steps of a pass in their order. It is a [trace.Sink].
type log struct {
	mu    sync.Mutex
	steps []Step
	// drift are differences of an external resource that no step has yet.
	drift []Difference
	end   trace.End
	told  []string
}

// begin forgets how the pass before ended.
func (l *log) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end, l.drift = trace.End{}, nil
}

// onlyRecorded reports whether nothing was written, or would have been called, but the object of the pass.
func (l *log) onlyRecorded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end.Err == "" && !slices.ContainsFunc(l.steps, func(s Step) bool { return s.Error != "" || s.Verb == verbUnchanged || s.changes() && !s.own })
}

func (l *log) add(s Step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, s)
}

// Record implements [trace.Sink].
func (l *log) Record(r trace.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := r.Event.(type) {
	case trace.Decision:
		l.steps = append(l.steps, Step{Verb: verbDecision, Rule: e.Rule, Op: e.Action, Why: e.Because})
	case trace.Drift:
		l.drift = append(l.drift, Difference{Path: e.Path, From: e.Have, To: e.Want, Effect: e.Effect})
	case trace.Call:
		s := Step{Verb: verbRead, Object: e.Target, Op: e.Op, Why: e.Result, Error: e.Err}
		if e.Mutating {
			s.Verb, s.Why, s.Fields, l.drift = verbCall, "", l.drift, nil
		}
		l.steps = append(l.steps, s)
	case trace.End:
		l.end = e
	case trace.Start, trace.Transition, trace.Write: // writes are seen by the guard, with their fields
	}
}

// stepOf describes a write, given the object before and what the API server answered.
func stepOf(t target, r *http.Request, before map[string]any, sent, said []byte, code int) Step {
	body, after := decode(sent), decode(said)
	about := before
	if about == nil {
		about = body
	}
	if about == nil {
		about = after
	}
	s := Step{Subresource: t.subresource, Object: titleOf(t, about)}
	switch {
	case r.Method == http.MethodDelete:
		s.Verb = verbDelete
	case before == nil:
		s.Verb = verbCreate
	default:
		s.Verb = verbUpdate
	}
	if code >= 300 {
		s.Error, _ = after["message"].(string)
		if s.Error == "" {
			s.Error = http.StatusText(code)
		}
		return s
	}
	if s.Verb == verbDelete {
		return s
	}
	s.Fields = differences(t, before, after)
	if s.Verb == verbUpdate && len(s.Fields) == 0 {
		s.Verb = verbUnchanged
	}
	return s
}

// titleOf names an object.
func titleOf(t target, o map[string]any) string {
	kind, _ := o["kind"].(string)
	if kind == "" || kind == "DeleteOptions" || kind == "Status" {
		kind = t.resource
	}
	name := t.name
	if name == "" {
		name = nameOf(o)
	}
	if name == "" {
		m, _ := o["metadata"].(map[string]any)
		if prefix, _ := m["generateName"].(string); prefix != "" {
			name = prefix + "*"
		}
	}
	return strings.Join(slices.DeleteFunc([]string{kind, t.namespace, name}, func(s string) bool { return s == "" }), "/")
}
