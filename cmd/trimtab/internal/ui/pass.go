package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/inspect"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/replay"
	"github.com/trimtab-dev/trimtab/trace"
)

// latest is how many passes the page of an object shows.
const latest = 10

// passes are the latest passes over an object.
type passes struct {
	// Problem says why they are not known.
	Problem string `json:"problem,omitempty"`
	// Passes are the newest ones, the newest first, and Older is how many more are recorded.
	Passes []passLine `json:"passes"`
	Older  int        `json:"older,omitempty"`
}

// passLine is a pass on one line.
type passLine struct {
	Controller string    `json:"controller"`
	Number     uint64    `json:"number"`
	UID        string    `json:"uid"`
	Began      time.Time `json:"began"`
	// Outcome and what is with it are those of trace.End. Outcome is empty if no end was recorded.
	Outcome string        `json:"outcome"`
	Err     string        `json:"err,omitempty"`
	Took    time.Duration `json:"took,omitempty"`
	Again   time.Duration `json:"again,omitempty"`
	// Changed is what was changed, in a few words each.
	Changed []string `json:"changed,omitempty"`
}

func lineOf(p inspect.Pass) passLine {
	end, _ := p.End()
	return passLine{
		Controller: p.Controller, Number: p.Number, UID: p.Object.UID, Began: p.Began(), Changed: p.Changed(),
		Outcome: end.Outcome, Err: end.Err, Took: end.Took, Again: end.Again,
	}
}

// linesOf returns passes on one line each, the newest first.
func linesOf(all []inspect.Pass) []passLine {
	lines := []passLine{}
	for _, p := range slices.Backward(all) {
		lines = append(lines, lineOf(p))
	}
	return lines
}

// errUnknown is the error if it is not known where the operator of an object runs.
var errUnknown = errors.New("what the operator has done is not known, as it is not known where it runs; start the dashboard with trimtab dev, or with trimtab ui --operator URL")

// passesOf asks the operator for the passes over an object, oldest first. An empty uid stands for each object that has its name.
func (s *Server) passesOf(ctx context.Context, r model.Ref, uid string) ([]inspect.Pass, error) {
	if !s.options.Operator.Known() {
		return nil, errUnknown
	}
	records, err := s.options.Operator.Trace(ctx, trace.Query{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: uid})
	// In a query, no namespace stands for all of them.
	records = slices.DeleteFunc(records, func(rec trace.Record) bool { return rec.Object.Namespace != r.Namespace })
	return inspect.Passes(records), err
}

// latestOf is what the page of an object shows of its passes: those in the records about it, or why there are none.
func latestOf(records []trace.Record, missed error) passes {
	if missed != nil {
		return passes{Problem: missed.Error(), Passes: []passLine{}}
	}
	all := inspect.Passes(records)
	older := max(0, len(all)-latest)
	return passes{Passes: linesOf(all[older:]), Older: older}
}

// passPage is one pass, step by step.
type passPage struct {
	Object model.Ref `json:"object"`
	Pass   passLine  `json:"pass"`
	// Lacks says what is not recorded of the pass.
	Lacks []string `json:"lacks,omitempty"`
	Steps []step   `json:"steps"`
	// Previous and Next are the passes before and after this one.
	Previous *passLine `json:"previous,omitempty"`
	Next     *passLine `json:"next,omitempty"`
	// Others are the other passes, the newest first. With is the one that this pass is compared with, and Compared has the lines of
	// both.
	Others   []passLine     `json:"others"`
	With     *passLine      `json:"with,omitempty"`
	Compared []inspect.Line `json:"compared,omitempty"`
}

// step is something that happened in a pass.
type step struct {
	// After is the time since the pass began.
	After  time.Duration `json:"after"`
	Record trace.Record  `json:"record"`
}

// pass is the page of a pass.
func (s *Server) pass(ctx context.Context, q url.Values) (any, error) {
	r, all, at, err := s.passIn(ctx, q)
	if err != nil {
		return nil, err
	}
	p := passPage{Object: r, Pass: lineOf(all[at]), Lacks: lacks(all, at), Steps: []step{}}
	for _, rec := range all[at].Records {
		p.Steps = append(p.Steps, step{rec.Time.Sub(all[at].Began()), rec})
	}
	if at > 0 {
		p.Previous = new(lineOf(all[at-1]))
	}
	if at+1 < len(all) {
		p.Next = new(lineOf(all[at+1]))
	}
	p.Others = linesOf(slices.Delete(slices.Clone(all), at, at+1))
	with := at - 1
	if named := q.Get("with"); named != "" {
		if with, err = indexOf(all, q.Get("withController"), named); err != nil {
			return nil, fmt.Errorf("compare with it: %w", err)
		}
	}
	if with >= 0 && with != at {
		// From the older to the newer one.
		p.With, p.Compared = new(lineOf(all[with])), inspect.Compare(all[min(with, at)], all[max(with, at)])
	}
	return p, nil
}

// passIn finds the pass that a query names among those over its object.
func (s *Server) passIn(ctx context.Context, q url.Values) (r model.Ref, all []inspect.Pass, at int, err error) {
	if r, err = refOf(q); err != nil {
		return r, nil, 0, err
	}
	if all, err = s.passesOf(ctx, r, q.Get("uid")); err != nil {
		return r, nil, 0, err
	}
	at, err = indexOf(all, q.Get("controller"), q.Get("pass"))
	return r, all, at, err
}

// indexOf finds a pass by its number, and by its controller if one is named.
func indexOf(all []inspect.Pass, controller, number string) (int, error) {
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("pass=%q: name a pass by its number", number)
	}
	for i, p := range slices.Backward(all) { // numbers repeat when the operator is restarted
		if p.Number == n && (controller == "" || p.Controller == controller) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("pass %d is not recorded: the operator keeps what it has done last, and forgets it with a restart; the page of the object lists the passes that are known", n)
}

// lacks says what is not recorded of a pass.
func lacks(all []inspect.Pass, at int) (list []string) {
	if _, recorded := all[at].Start(); !recorded {
		list = append(list, "The beginning of the pass is not recorded any more: the operator keeps what it has done last.")
	}
	if _, recorded := all[at].End(); !recorded && at == len(all)-1 {
		list = append(list, "The pass has not ended yet.")
	} else if !recorded {
		list = append(list, "The end of the pass is not recorded.")
	}
	return list
}

// test writes a test from a pass. It is text for the page; nothing is written to a disk.
func (s *Server) test(w http.ResponseWriter, r *http.Request) {
	file, err := s.saved(r.Context(), r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(file) // whoever asked is gone
}

func (s *Server) saved(ctx context.Context, q url.Values) (replay.File, error) {
	r, all, at, err := s.passIn(ctx, q)
	if err != nil {
		return replay.File{}, err
	}
	o, err := s.options.Cluster().Read(ctx, r)
	if err != nil {
		return replay.File{}, fmt.Errorf("a test begins with the object: %w", err)
	}
	return replay.Write(replay.Input{Pass: all[at], Object: o, Module: s.options.Module})
}
