package fault

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// broken is a finding as the teller gets it.
func broken(message, token string) Finding {
	return Finding{Token: token, Violations: []Violation{{Invariant: I1, Message: message}}}
}

// TestTeller proves that an exploration that takes long says what is being played, also before the schedules, that it says of
// each finding what is wrong and how to see it again, and that one that does not take long says nothing.
func TestTeller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		teller := newTeller("toy")
		teller.out = &out
		stop := teller.start()
		teller.begin(part{what: "undisturbed runs", all: 3})
		teller.did()
		teller.count()
		teller.found(broken("it is\n  wrong", "v1/toy/"))
		<-time.After(29 * time.Second)
		synctest.Wait()
		if out.Len() > 0 {
			t.Errorf("it said too early: %s", out.String())
		}
		<-time.After(32 * time.Second)
		teller.begin(part{what: "schedules", all: 40})
		for range 4 {
			teller.did()
		}
		<-time.After(30 * time.Second)
		teller.count()
		teller.found(broken(strings.Repeat("long ", 100), "v1/toy/crash-after@2"))
		stop()
		<-time.After(time.Hour)
		want := `fault: toy: found: it is wrong (I1); -fault.replay='v1/toy/'
fault: toy: playing undisturbed runs: 1 of 3 played in 30s, 1 finding
fault: toy: playing undisturbed runs: 1 of 3 played in 1m0s, 1 finding
fault: toy: playing schedules: 4 of 40 played in 29s, 1 finding
fault: toy: found: ` + strings.Repeat("long ", 100)[:299] + `… (I1); -fault.replay='v1/toy/crash-after@2'
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("what was said (-want +got):\n%s", diff)
		}
	})
}

// TestTold proves that an exploration says each thing that is wrong once.
func TestTold(t *testing.T) {
	s := toyLife("finalizer first")
	e, err := newExploration(t, &s, options{kinds: []Kind{Crashes, Races}})
	if err != nil {
		t.Fatal(err)
	}
	defer quieten()()
	var out strings.Builder
	e.teller.out, e.teller.loud = &out, true
	r, err := e.explore()
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]bool{}
	for _, f := range r.Findings {
		groups[f.found.Group()] = true
	}
	if got := strings.Count(out.String(), "found: "); got != len(groups) || got == 0 {
		t.Errorf("%d things that are wrong were said, want %d:\n%s", got, len(groups), out.String())
	}
}

// TestPlannedRuns proves that the runs that come before the schedules are reported, too.
func TestPlannedRuns(t *testing.T) {
	e, _ := prepared(t, toyLife(""))
	if got := e.teller.now; got.what != "undisturbed runs" || got.played != sameRuns || got.all != sameRuns {
		t.Errorf("the undisturbed runs were reported as %+v", got)
	}
	if _, err := e.jobsOf(Races); err != nil {
		t.Fatal(err)
	}
	if got := e.teller.now; got.what != "runs with a change that comes early" || got.played != got.all || got.all == 0 {
		t.Errorf("the runs that races are compared with were reported as %+v", got)
	}
}
