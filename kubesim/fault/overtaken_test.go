package fault

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// TestOvertaken proves that an operator is found which trusts that nothing goes once its finalizer
// is written, and by nothing else; and that one which cleans up behind such a delete is not.
func TestOvertaken(t *testing.T) {
	s := toyLife("trusts its finalizer")
	for _, f := range Explore(t, s, Only(Crashes, Faults, Stale, Duplicates, Races)).Findings {
		t.Errorf("without such deletes:\n%s", f.Text)
	}
	r := Explore(t, s, Only(Overtaken))
	var broken []string
	for _, f := range r.Findings {
		broken = append(broken, string(f.Violations[0].Invariant))
	}
	if diff := cmp.Diff([]string{"I2"}, slices.Compact(broken)); diff != "" {
		t.Errorf("broken invariants (-want +got):\n%s", diff)
	}
	const told = "overtaken: a user's delete, begun before the finalizer, removes the object just after"
	if len(r.Findings) > 0 && !strings.Contains(r.Findings[0].Text, told) {
		t.Errorf("the report does not say %q:\n%s", told, r.Findings[0].Text)
	}
	for _, f := range r.Findings {
		if strings.Contains(f.Text, history.Undisturbed) || !strings.Contains(f.Text, "if the user's delete comes before or after") {
			t.Errorf("the report does not say that the run is compared with ordinary deletes:\n%s", f.Text)
		}
	}
	right := Explore(t, toyLife(""), Only(Overtaken))
	for _, f := range right.Findings {
		t.Errorf("an operator that cleans up: %s", f.Text)
	}
	if right.Schedules[Overtaken] < 3 {
		t.Errorf("%v were played; want one after the finalizer, one after the effect, one after the record", right.Schedules)
	}
}

// TestOvertakenIsTheServers proves that the object goes as the API server lets it go: with the
// finalizer on it, without a time of deletion, and not if the finalizer was there when it read.
func TestOvertakenIsTheServers(t *testing.T) {
	e, w := prepared(t, toyLife(""))
	all := e.plan.Overtakings()
	if len(all) == 0 {
		t.Fatal("the toy writes a finalizer, and no delete comes too late for it")
	}
	first := all[0]
	r := w.Play(t, run.Job{Schedule: schedule.Schedule{first.Disturbance()}, Last: first.Step})
	i := slices.IndexFunc(r.Run.Changes, func(c history.Change) bool { return c.By == history.User && c.After == nil })
	if i < 0 {
		t.Fatalf("nothing was removed: %v", lines(r))
	}
	gone := r.Run.Changes[i].Before
	if diff := cmp.Diff([]string{toyFinalizer}, gone.GetFinalizers()); diff != "" || gone.GetDeletionTimestamp() != nil {
		t.Errorf("it went as of %v with the finalizers (-want +got):\n%s", gone.GetDeletionTimestamp(), diff)
	}
	r = w.Play(t, run.Job{Schedule: schedule.Schedule{{Kind: schedule.Overtaken, At: first.Removes + 3, Arg: "999"}}, Last: first.Step})
	if slices.ContainsFunc(r.Run.Changes, func(c history.Change) bool { return c.By == history.User && c.After == nil }) || len(r.Run.Faults) > 0 {
		t.Error("a delete that never began removed something")
	}
	put := slices.IndexFunc(e.reference.Run.Calls[first.Read+1:], func(c history.Call) bool { return c.Side == history.Kubernetes && c.Write }) + first.Read + 1
	r = w.Play(t, run.Job{Schedule: schedule.Schedule{{Kind: schedule.Overtaken, At: put}}, Last: first.Step})
	if !r.Void {
		t.Errorf("a delete that found the finalizer at call %d was taken for one that was overtaken", put)
	}
}

// TestOvertakenReplay proves that a token plays the same again.
func TestOvertakenReplay(t *testing.T) {
	s := toyLife("trusts its finalizer")
	all := Explore(t, s, Only(Overtaken))
	if len(all.Findings) < 2 {
		t.Fatalf("%d findings", len(all.Findings))
	}
	for _, f := range all.Findings {
		*replayFlag = f.Token
		got := Explore(t, s)
		*replayFlag = ""
		if len(got.Findings) != 1 || got.Findings[0].Text != f.Text {
			t.Errorf("replaying %s gave %v", f.Token, got.texts())
		}
	}
	*replayFlag = "v1/toy/overtaken@0"
	defer func() { *replayFlag = "" }()
	if _, err := explored(t, s, time.Minute); err == nil || !strings.Contains(err.Error(), "overtakes no delete") {
		t.Errorf("a token of a call without a finalizer gave %v", err)
	}
}

// TestWaive proves that what breaks an invariant that was waived is no finding but a note with the reason,
// and what breaks another one is a finding.
func TestWaive(t *testing.T) {
	s := toyLife("trusts its finalizer")
	var broken []Invariant
	for _, f := range Explore(t, s, Only(Overtaken)).Findings {
		for _, v := range f.Violations {
			broken = append(broken, v.Invariant)
		}
	}
	slices.Sort(broken)
	broken = slices.Compact(broken)
	if len(broken) < 2 {
		t.Fatalf("%v are broken; there has to be one to waive and one to keep", broken)
	}
	opts := []Option{Only(Overtaken)}
	for _, i := range broken[1:] {
		opts = append(opts, Waive(i, "it is mended later"))
	}
	rest := Explore(t, s, opts...).Findings
	if len(rest) == 0 {
		t.Errorf("%s is not found any more", broken[0])
	}
	for _, f := range rest {
		for _, v := range f.Violations {
			if v.Invariant != broken[0] {
				t.Errorf("%s is told although it is waived", v.Invariant)
			}
		}
	}
	r := Explore(t, s, append(opts, Waive(broken[0], "nobody minds"))...)
	for _, f := range r.Findings {
		t.Errorf("found although it is waived:\n%s", f.Text)
	}
	for _, want := range []string{string(broken[0]) + " is waived, and broken in ", ": nobody minds"} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, r)
		}
	}
}

// TestBadWaivers proves that a waiver has an invariant and a reason.
func TestBadWaivers(t *testing.T) {
	for want, option := range map[string]Option{
		`Waive("I99", ...) names no invariant`: Waive("I99", "why not"),
		"Waive(fault.I5, ...) gives no reason": Waive(I5, " "),
		`Waive("", ...) names no invariant`:    Waive("", "all of them"),
	} {
		var o options
		option(&o)
		s := toyLife("")
		_, err := newExploration(t, &s, o)
		if _, ok := errors.AsType[sandbox.MisuseError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a misuse: %s", err, want)
		}
	}
}
