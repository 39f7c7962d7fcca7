package invariant_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/invariant"
)

// tells reports whether a violation with the given id says so.
func tells(found []history.Violation, id, text string) bool {
	return slices.ContainsFunc(found, func(v history.Violation) bool { return v.Invariant == id && strings.Contains(v.Message, text) })
}

// TestCreatedAgain proves that a generation which is that of the predecessor of an object is found with a hint at that.
func TestCreatedAgain(t *testing.T) {
	s := newStory(t)
	s.step("re-create")
	s.put("user", shop, database(3, "", ""))
	s.put("user", shop, "")
	s.put("user", shop, database(1, "", ""))
	s.put("operator", shop, database(1, "", "observedGeneration: 3"))
	s.rest()
	want := "status.observedGeneration of databases.demo.dev default/shop became 3; the generation of the object that was created again is 1"
	if found := invariant.Against(s.run)(s.run); !tells(found, "I7", want) {
		t.Errorf("got %v, want one that says %q", found, want)
	}
}

// TestNoiseAfterRestart proves that a finding says whether a write at rest comes in the first pass after a restart.
func TestNoiseAfterRestart(t *testing.T) {
	for passes, want := range map[int]string{1: "in the first pass after a restart", 2: "2s after a restart"} {
		s := newStory(t)
		s.step("create")
		s.put("user", shop, database(1, "", ""))
		s.rest()
		w := history.Silence{Call: len(s.run.Calls), From: s.now, Restarted: 1, ReadsAllowed: -1}
		s.run.Silence = &w
		s.run.Processes = append(s.run.Processes, history.Process{Started: s.now})
		for n := range passes {
			s.begin("default/shop")
			s.tick(2 * time.Second / time.Duration(passes))
			if n == passes-1 {
				s.put("operator", shop, database(1, mark, ""))
			}
			s.end("")
		}
		w.To, w.LastCall = s.now, len(s.run.Calls)
		if found := invariant.Against(&history.Run{})(s.run); !tells(found, "I5", "first: update databases.demo.dev default/shop, "+want) {
			t.Errorf("got %v, want one that says %q", found, want)
		}
	}
}

// TestGreeting proves that a write of what is there already is a habit in the first pass after a restart, and noise in each later one.
func TestGreeting(t *testing.T) {
	for passes, harmless := range map[int]bool{1: true, 2: false, 3: false} {
		s := newStory(t)
		s.step("create")
		s.put("user", shop, database(1, "", ""))
		s.rest()
		w := history.Silence{Call: len(s.run.Calls), From: s.now, Restarted: 1, ReadsAllowed: -1}
		s.run.Silence = &w
		s.run.Processes = append(s.run.Processes, history.Process{Started: s.now})
		for n := range passes {
			s.begin("default/shop")
			if n == passes-1 {
				s.call(history.Call{Verb: "update", Group: "demo.dev", Resource: "databases", Namespace: "default", Name: "shop", Write: true})
			}
			s.end("")
			s.tick(time.Second)
		}
		w.To, w.LastCall = s.now, len(s.run.Calls)
		found := invariant.Against(&history.Run{})(s.run)
		i := slices.IndexFunc(found, func(v history.Violation) bool { return v.Invariant == "I5" })
		if i < 0 || found[i].Harmless != harmless {
			t.Errorf("in pass %d: got %v, want one of I5 that is harmless: %v", passes, found, harmless)
		}
	}
}

// TestSameForAnotherID proves that what was created too early is the same to those who look for what is known, whatever ID the external
// API has given it: the race at rest that is compared with, and the undisturbed run, have one finding.
func TestSameForAnotherID(t *testing.T) {
	var subjects [][]string
	for _, id := range []string{"3f2a-d", "3f2a-e"} {
		s := newStory(t)
		s.step("create")
		s.put("user", shop, database(1, "", ""))
		s.external("operator", s.queue(id, 1))
		s.rest()
		for _, v := range invariant.Against(s.run)(s.run) {
			if v.Invariant == "I4" {
				subjects = append(subjects, v.Subjects)
			}
		}
	}
	if len(subjects) != 2 || !slices.Equal(subjects[0], subjects[1]) {
		t.Errorf("got %q, want the same subjects twice", subjects)
	}
}
