package fault

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trimtab-dev/trimtab/kubesim/internal/history"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (p *play) present() history.World {
	w := history.World{Objects: map[string]string{}, Things: p.things()}
	for _, row := range p.db.Rows() {
		d := p.object(row.Key, row.Data, row.Rev)
		if d.object == nil || d.resource.Resource == "leases" || d.resource.Resource == "events" {
			continue
		}
		u := d.object.DeepCopy()
		for _, f := range []string{"resourceVersion", "uid", "managedFields", "creationTimestamp"} {
			unstructured.RemoveNestedField(u.Object, "metadata", f)
		}
		b, _ := json.Marshal(u.Object)
		w.Objects[row.Key] = tmRe.ReplaceAllString(string(b), "T")
	}
	return w
}

var tmRe = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)

func sameWorld(a, b history.World) bool { return reflect.DeepEqual(a, b) }

func worldDiff(a, b history.World) string { return cmp.Diff(a, b) }

// judge holds a run against all invariants.
func (e *explorer) judge(to *Report, r result, j job) {
	if r.play.void {
		return
	}
	like := j.like
	if like == nil {
		like = r.run
	}
	var found []Violation
	if r.err != nil {
		found = append(found, restless(r))
	}
	if r.err == nil || errors.Is(r.err, errRestless) {
		for i, st := range r.run.Steps {
			if !sameWorld(st.World, like.Steps[i].World) {
				found = append(found, Violation{Invariant: "I1", Message: st.Name, Detail: worldDiff(like.Steps[i].World, st.World)})
				break
			}
		}
	}
	if len(found) > 0 {
		to.Findings = append(to.Findings, e.finding(r, j, like, found))
	}
}

// restless is the violation of a run that could not be played to its end.
func restless(r result) Violation {
	if errors.Is(r.err, errRestless) {
		return Violation{Invariant: "I13", Title: "no hot loop", Message: r.err.Error() + ": " + busiest(r.run), Call: history.Nobody}
	}
	return Violation{Invariant: "I1", Title: "ends as without the disturbance", Message: r.err.Error(), Call: history.Nobody}
}

// judgeSilences looks at each silence of a run that kept several.
func (e *explorer) judgeSilences(to *Report, r result) {
	var found []Violation
	for i := range r.run.Silences {
		run := *r.run
		run.Silence = &r.run.Silences[i]
		_ = run
	}
	if len(found) > 0 {
		to.Findings = append(to.Findings, e.finding(r, job{}, r.run, found[:1]))
	}
}

func (e *explorer) finding(r result, j job, like *history.Run, found []Violation) Finding {
	token := j.schedule.token(e.scenario.Name)
	return Finding{Token: token, Violations: found, Text: token + found[0].Message + found[0].Detail}
}

// replay plays one schedule.
func (e *explorer) replay(t *testing.T, token string) (Report, error) {
	scenario, s, err := parseToken(token)
	if err != nil {
		return Report{}, err
	}
	out := Report{Scenario: e.scenario.Name, Schedules: map[Kind]int{}, Pruned: map[Rule]int{}}
	if scenario != e.scenario.Name {
		return out, nil // of another scenario of the same test
	}
	reference, err := e.undisturbed(t)
	if err != nil {
		return out, err
	}
	j := job{schedule: s, like: reference.run}
	if i := slices.IndexFunc(s, func(d disturbance) bool { return d.kind == race }); i >= 0 {
		like, err := e.quietRaces(t, reference)
		if err != nil {
			return out, err
		}
		p := &plan{scenario: e.scenario, reference: reference, pruned: out.Pruned}
		for _, r := range p.races(like) {
			if slices.Equal(r.schedule, s) {
				j = r
			}
		}
	}
	return out, e.playAll(t, []job{j}, func(j job, r result) { e.judge(&out, r, j) })
}
