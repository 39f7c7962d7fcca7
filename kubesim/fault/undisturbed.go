package fault

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/invariant"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/judge"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/report"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// How often the undisturbed run is played until it is believed to be the same each time, and how often it
// may turn out to differ in more fields.
const (
	sameRuns   = 3
	differings = 5
)

// fourWeeks is how much later each undisturbed run begins than the one before, so that a time that is written as a number, or in a
// name, differs like what is random. The hour and the day of the week are the same, by which schedules of users go.
const fourWeeks = 4 * 7 * 24 * time.Hour

// playReference plays the scenario several times without any disturbance. The runs must be the same except
// for fields of objects that are random: those are left out from then on, and reported.
func (e *exploration) playReference() error {
	var what string
	var fields []history.Field
	for range differings {
		shapes := len(e.simulation.State.Random)
		first, err := e.wholly(run.Job{Keep: true})
		if err != nil {
			return err
		}
		var again []*history.Run
		if what, fields, again, err = e.playAgain(first); err != nil {
			return err
		}
		if what == "" {
			bind(append(again, first.Run))
			if wrong := invariant.WrongOwner(first.Run); wrong != "" {
				return errors.New(wrong)
			}
			e.reference = first
			return e.checkShared(first.Run)
		}
		if len(fields) == 0 && shapes == len(e.simulation.State.Random) {
			likely := "likely causes: a map's order before writes, time or random numbers from outside the bubble, goroutines that race"
			if chances := first.Learned.Chances; len(chances) > 0 {
				likely = "the cause may be that goroutines which nothing tells apart waited at the same time to " + strings.Join(chances, ", or to ") +
					"; give such calls the context of their reconcile; other " + likely
			}
			return fmt.Errorf("the undisturbed run is not the same twice: %s; %s", what, likely)
		}
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.String()
	}
	return fmt.Errorf("the undisturbed run differs in other fields each time, the last time in %s; take random numbers out of the operator, or name the fields in Foreign", strings.Join(names, ", "))
}

// bind notes at the end of each step of several undisturbed runs what random fields have in common in all of them.
func bind(runs []*history.Run) {
	for i := range runs[0].Steps {
		states := make([]history.State, len(runs))
		for n, r := range runs {
			states[n] = r.Steps[i].State
		}
		bonds := state.Bonds(states)
		for _, r := range runs {
			r.Steps[i].State.Bonds = bonds
		}
	}
}

// relate notes in a run with which others are compared what is known of the undisturbed one: the bonds that it has,
// too, and what becomes of things with time.
func (e *exploration) relate(r *history.Run) {
	steps := e.reference.Run.Steps
	var bonds []history.Bond
	for _, step := range steps {
		bonds = append(bonds, step.State.Bonds...)
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		s.State.Bonds = state.Kept(bonds, s.State)
		if i < len(steps) {
			s.Aged = steps[i].Aged
		}
	}
}

// playAgain plays the scenario again. It returns what is not as it was first, the fields that are left out
// because of that, and the runs.
func (e *exploration) playAgain(first run.Result) (what string, fields []history.Field, runs []*history.Run, err error) {
	for n := 1; n < sameRuns && what == ""; n++ {
		another, err := e.wholly(run.Job{Later: time.Duration(n) * fourWeeks})
		if err != nil {
			return "", nil, nil, err
		}
		runs = append(runs, another.Run)
		if sandbox.IsSame(first.Learned.External, another.Learned.External) {
			return "", nil, nil, sandbox.MisuseError("ExternalAPI returned the same fake for two worlds; make a new one each time")
		}
		if what = e.firstDifference(first.Run, another.Run); what == "" {
			continue
		}
		if !e.learnNames(first.Run, another.Run) { // else fields are of objects with other names
			fields = e.mask(first.Run, another.Run)
		}
	}
	return what, fields, runs, nil
}

// wholly plays a job that must come to its end.
func (e *exploration) wholly(j run.Job) (run.Result, error) {
	r, err := e.alone(j)
	e.teller.did()
	switch {
	case err != nil:
		return r, err
	case r.Err != nil:
		e.unfit = r
		return r, unfit(r)
	}
	return r, nil
}

// alone plays a job while nothing else is played.
func (e *exploration) alone(j run.Job) (r run.Result, err error) {
	if e.mustEnd() {
		return r, overAt(e.clock.last)
	}
	w, err := e.simulation.Hire()
	if err != nil {
		return r, err
	}
	r = w.Play(e.t, j)
	if !r.Lost {
		e.simulation.Dismiss(w)
	}
	return r, nil
}

// mask leaves out the fields in which two undisturbed runs differ, and returns those that are new.
func (e *exploration) mask(a, b *history.Run) (fields []history.Field) {
	masked := &e.simulation.State.Masked
	for i := range min(len(a.Steps), len(b.Steps)) {
		for _, f := range state.Mask(a.Steps[i].State, b.Steps[i].State) {
			if !slices.Contains(*masked, f) {
				*masked = append(*masked, f)
				fields = append(fields, f)
			}
		}
	}
	return fields
}

// unfit says why a scenario cannot be explored.
func unfit(r run.Result) error {
	if errors.Is(r.Err, run.ErrRestless) {
		return fmt.Errorf("%w: %s", r.Err, judge.Busiest(r.Run))
	}
	return r.Err
}

// firstDifference says where two runs part, "" if they do not. Names that are random, such as those of
// users in the paths of an HTTP API, count by the order in which they appear.
func (e *exploration) firstDifference(a, b *history.Run) string {
	x, y := aliases(a, b, e.simulation.State.Random)
	for i := range max(len(a.Calls), len(b.Calls)) {
		if renamed(lineOf(a, i), x) != renamed(lineOf(b, i), y) {
			return fmt.Sprintf("call %d was %s, then %s", i, shown(a, i), shown(b, i))
		}
	}
	for i := range a.Steps {
		if !state.Equal(a.Steps[i].State, b.Steps[i].State) {
			return fmt.Sprintf("after step %q the runs differ:\n%s", a.Steps[i].Name, state.Diff(a.Steps[i].State, b.Steps[i].State))
		}
	}
	return ""
}

// shortestRandom is the length from which a word may be a random name.
const shortestRandom = 6

// learnNames notes the shapes of names that the operator chooses at random: those that the objects have which it
// creates one after the other. It reports whether there are new ones.
func (e *exploration) learnNames(a, b *history.Run) bool {
	known := &e.simulation.State.Random
	before := len(*known)
	x, y := created(a), created(b)
	for i := range min(len(x), len(y)) {
		kind := strings.TrimSuffix(x[i].Resource+"."+x[i].Group, ".")
		if kind != strings.TrimSuffix(y[i].Resource+"."+y[i].Group, ".") || x[i].After.GetGenerateName() != "" {
			continue
		}
		if s, ok := state.ShapeOf(kind, x[i].Name, y[i].Name); ok && !slices.Contains(*known, s) {
			*known = append(*known, s)
		}
	}
	return len(*known) > before
}

// created lists what an operator created.
func created(r *history.Run) (all []history.Change) {
	for _, c := range r.Changes {
		if c.By == history.Operator && c.Before == nil && c.After != nil && !history.Housekeeping(c.Group, c.Resource) {
			all = append(all, c)
		}
	}
	return all
}

// aliases returns common names for the words that stand in the same places of two runs' external calls and
// differ: each word of one run is always the same word of the other. In calls to Kubernetes, they are names of
// the given shapes, or of events, which have the time in them.
func aliases(a, b *history.Run, shapes []state.Shape) (x, y map[string]string) {
	x, y = map[string]string{}, map[string]string{}
	for i := range min(len(a.Calls), len(b.Calls)) {
		first, second := strings.FieldsFunc(a.Calls[i].What, isBetween), strings.FieldsFunc(b.Calls[i].What, isBetween)
		if a.Calls[i].Side != b.Calls[i].Side || len(first) != len(second) {
			continue
		}
		for n, word := range first {
			other := second[n]
			isShaped := func(s state.Shape) bool { return s.Fits(word) && s.Fits(other) }
			if a.Calls[i].Side != history.External && a.Calls[i].Resource != "events" && !slices.ContainsFunc(shapes, isShaped) {
				continue
			}
			if word == other || len(word) < shortestRandom || len(other) < shortestRandom || x[word] != "" || y[other] != "" {
				continue
			}
			alias := fmt.Sprintf("random-%d", len(x)+1)
			x[word], y[other] = alias, alias
		}
	}
	return x, y
}

// renamed puts the aliases of words into a text.
func renamed(text string, aliases map[string]string) string {
	if len(aliases) == 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		end := strings.IndexFunc(text, isBetween)
		if end < 0 {
			end = len(text)
		}
		b.WriteString(cmp.Or(aliases[text[:end]], text[:end]))
		if end < len(text) {
			_, size := utf8.DecodeRuneInString(text[end:])
			b.WriteString(text[end : end+size])
			end += size
		}
		text = text[end:]
	}
	return b.String()
}

// isBetween reports whether a rune stands between words.
func isBetween(r rune) bool {
	return r != '-' && r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

func lineOf(r *history.Run, i int) string {
	if i >= len(r.Calls) {
		return "nothing"
	}
	c := r.Calls[i]
	return fmt.Sprintf("%q (process %d, pass %d, changed %v, error %q)", c.What, c.Process, c.Pass, c.Changed, c.Err)
}

// shown is a call in words.
func shown(r *history.Run, i int) string {
	if i >= len(r.Calls) {
		return "nothing"
	}
	c := r.Calls[i]
	by := "in no reconcile"
	if c.Pass >= 0 && c.Pass < len(r.Passes) {
		by = fmt.Sprintf("in reconcile %d, of controller %s for %s", c.Pass, r.Passes[c.Pass].Controller, r.Passes[c.Pass].Object)
	}
	if c.Process > 0 {
		by += fmt.Sprintf(", in process %d of the operator", c.Process+1)
	}
	if c.Write && !c.Changed {
		by += ", changed nothing"
	}
	if c.Err != "" {
		by += fmt.Sprintf(", error %q", c.Err)
	}
	return fmt.Sprintf("%q (%s)", c.What, by)
}

// traceOf is a hash of what an operator did and what came of it.
func traceOf(r *history.Run) string {
	h := sha256.New()
	for i := range r.Calls {
		fmt.Fprintln(h, lineOf(r, i))
	}
	for _, c := range r.Changes {
		if c.Group != "coordination.k8s.io" { // leases are renewed at random times
			fmt.Fprintln(h, c.Resource, c.Namespace, c.Name, c.By)
		}
	}
	for _, v := range r.External {
		fmt.Fprintln(h, v.Resources)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// judgeUndisturbed compares the undisturbed run with the invariants, and plays it once
// more with an eye on silence after each step.
func (e *exploration) judgeUndisturbed() error {
	e.find(run.Job{}, e.reference)
	e.teller.begin(part{what: "undisturbed runs with silence after each step", all: 1})
	watched, err := e.alone(run.Job{Watchful: true})
	_, misuse := errors.AsType[sandbox.MisuseError](watched.Err)
	switch {
	case err != nil:
		return err
	case watched.Run == nil || misuse:
		return watched.Err
	case watched.Err != nil && !errors.Is(watched.Err, run.ErrRestless) && !run.IsUnmet(watched.Err): // perhaps what the silence itself has led to
		e.report.Notes = append(e.report.Notes, fmt.Sprintf(
			"with 15 minutes of silence after each step the steps cannot be played to their end, so the rest of them is not watched for needless calls (I5): %v", watched.Err))
	}
	woken := invariant.Woken(watched.Run, e.reference.Run)
	for i := range watched.Run.Steps {
		e.reference.Run.Steps[i].Aged = slices.Concat(watched.Run.Steps[i].Aged, woken[i])
	}
	if f, ok := e.judge.Silences(watched); ok {
		e.add(f)
	}
	return nil
}

// checkShared finds names in Shared that are no kinds: neither of those of the beginning nor of a
// CRD that came in the undisturbed run.
func (e *exploration) checkShared(r *history.Run) error {
	for _, name := range e.scenario.Shared {
		named := schema.ParseGroupResource(name)
		known, err := e.mapper.ResourceFor(named.WithVersion(""))
		came := slices.ContainsFunc(r.Changes, func(c history.Change) bool {
			return c.Group == apiextensionsv1.GroupName && c.Resource == "customresourcedefinitions" && c.Name == name
		})
		if !came && (err != nil || known.GroupResource() != named) { // a mapper takes singulars and beginnings of groups, too
			return sandbox.MisuseError(fmt.Sprintf("Shared names %q, which is not a kind of this cluster; write the plural and the group, as configmaps or deployments.apps", name))
		}
	}
	return nil
}

// withCalls adds to an error what the operator did last in an undisturbed run that did not come to its end.
func (e *exploration) withCalls(err error) error {
	r := e.unfit.Run
	if r == nil || len(r.Calls) == 0 {
		return err
	}
	if *callsFlag {
		return fmt.Errorf("%w\n\n%s", err, report.Calls(r))
	}
	return fmt.Errorf("%w\n\n%s-fault.calls shows all calls", err, report.LastCalls(r))
}

// withRefusals adds to an error what the operator was not allowed to do, which is the most likely
// cause of it.
func (e *exploration) withRefusals(err error) error {
	if e.roles == nil {
		return err
	}
	denied := e.roles.Access(e.simulation.Uses()).Denied
	if len(denied) == 0 {
		return err
	}
	return fmt.Errorf("%w; the operator was refused: %s (what it may do is in the roles of RBAC that a binding there names, or in all of them if there is none)",
		err, strings.Join(denied, ", "))
}
