package looptest

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Suite is what the cases of [Run] have in common.
type Suite struct {
	// New makes the controller. It is called for each case. Required.
	New func() Controller
	// Cluster is the cluster of each case, to whose Objects those of the case are added.
	Cluster Cluster
}

// Case is one pass over an object, and what is expected of it.
type Case struct {
	// Why says why the pass does this. It is printed when the case fails.
	Why string
	// Object is what the pass is over. Required. It is in the cluster unless Absent is set.
	Object client.Object
	// Absent means that the object does not exist.
	Absent bool
	// Given are other objects in the cluster.
	Given []client.Object
	// Faults meet the requests of the pass.
	Faults []Fault
	// Want is what is expected of the pass.
	Want Want
	// Then goes on after the pass, for example to another one. Nil ends the case.
	Then func(t *testing.T, env *Env)
}

// Want is what is expected of a pass. A line stands for all lines that begin with its words: "apply probes/status n/a" is
// a write whatever its body, and "Ready False" a condition whatever its reason.
type Want struct {
	// Writes and Events are all those of the pass, in order. Nil means that there are none.
	Writes, Events []string
	// Conditions are some of those that the object has then. "no Stalled" means that it has none of this type. Nil compares
	// nothing.
	Conditions []string
	// Outcome, State and Message are compared unless they are empty.
	Outcome, State, Message string
	// Next is compared unless it is zero: after how long the next pass is due, or [Never].
	Next time.Duration
	// Gone means that the object does not exist afterwards. False means that it does, unless the case is Absent.
	Gone bool
}

// Never says in [Want] that only an event leads to another pass.
const Never time.Duration = -1

// Run runs each case as a subtest, in parallel. Each has its own cluster and process, and time as package testing/synctest
// has it: a case begins at midnight of 2000-01-01 UTC, and time passes only where it waits, as in <-time.After(time.Minute).
func Run(t *testing.T, s Suite, cases map[string]Case) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if env := c.play(t, s); c.Then != nil {
					c.Then(t, env)
				}
			})
		})
	}
}

// play runs the pass and compares it.
func (c Case) play(t testing.TB, s Suite) *Env {
	t.Helper()
	env := c.env(t, s)
	c.compare(t, env.Pass(c.Object))
	return env
}

func (c Case) env(t testing.TB, s Suite) *Env {
	t.Helper()
	cluster := s.Cluster
	cluster.Objects = slices.Concat(cluster.Objects, c.Given)
	if !c.Absent {
		cluster.Objects = append(cluster.Objects, c.Object)
	}
	if len(c.Faults) > 0 {
		cluster.Wrap = append(slices.Clone(cluster.Wrap), Inject(c.Faults...).Wrap)
	}
	return NewEnv(t, s.New(), cluster)
}

func (c Case) compare(t testing.TB, got Result) {
	t.Helper()
	if diff := c.Want.Diff(got); diff != "" {
		t.Errorf("%s\n(-want +got):\n%s\nthe whole pass:\n%s", c.Why, diff, got)
	}
	if gone := got.Object == nil; !c.Absent && gone != c.Want.Gone {
		t.Errorf("%s\nthe object is gone: %t, want %t", c.Why, gone, c.Want.Gone)
	}
}

// Diff returns how a result differs from what is wanted, as go-cmp shows it; empty if it does not. It does not compare
// Gone.
func (w Want) Diff(got Result) string {
	want := map[string]any{"Writes": nonNil(w.Writes), "Events": nonNil(w.Events)}
	have := map[string]any{"Writes": aligned(w.Writes, got.Writes), "Events": aligned(w.Events, got.Events)}
	if w.Conditions != nil {
		want["Conditions"], have["Conditions"] = w.Conditions, selected(w.Conditions, got.Conditions)
	}
	for name, pair := range map[string][2]string{
		"Outcome": {w.Outcome, got.Outcome}, "State": {w.State, got.State}, "Message": {w.Message, got.Message},
	} {
		if pair[0] != "" {
			want[name], have[name] = pair[0], pair[1]
		}
	}
	if w.Next != 0 {
		want["Next"], have["Next"] = due(w.Next), due(Never)
		if got.Again {
			have["Next"] = due(got.Next)
		}
	}
	return cmp.Diff(want, have)
}

func due(next time.Duration) string {
	if next == Never {
		return "no pass is due"
	}
	return next.String()
}

func nonNil(lines []string) []string { return append([]string{}, lines...) }

// aligned returns got with each line that stands for what is wanted at its place replaced by that.
func aligned(want, got []string) []string {
	lines := nonNil(got)
	for i := range lines {
		if i < len(want) && begins(lines[i], want[i]) {
			lines[i] = want[i]
		}
	}
	return lines
}

// selected returns of got what is wanted, and for each wanted line that none stands for, the line of the same type.
func selected(want, got []string) []string {
	lines := []string{}
	for _, w := range want {
		absent, none := strings.CutPrefix(w, "no ")
		kind, _, _ := strings.Cut(absent, " ")
		i := slices.IndexFunc(got, func(g string) bool { return begins(g, kind) })
		switch {
		case none && i < 0, !none && i >= 0 && begins(got[i], w):
			lines = append(lines, w)
		case i >= 0:
			lines = append(lines, got[i])
		}
	}
	return lines
}

// begins reports whether line begins with words.
func begins(line, words string) bool {
	rest, ok := strings.CutPrefix(line, words)
	return ok && (rest == "" || rest[0] == ' ')
}
