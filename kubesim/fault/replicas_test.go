package fault

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// TestReplicas plays two processes at a time, of which one leads.
func TestReplicas(t *testing.T) {
	s := toyLife("")
	s.Replicas = 2
	s.Operator.Manager = manager.Options{LeaderElection: true, LeaderElectionID: "toy"}
	e, reference, w := prepared(t, s)

	t.Run("one of them leads", func(t *testing.T) {
		if n := len(reference.run.Processes); n != 2 {
			t.Fatalf("%d processes ran, want 2", n)
		}
		for _, p := range reference.run.Passes {
			if p.Process != reference.run.Passes[0].Process {
				t.Errorf("process %d reconciled while %d led", p.Process, reference.run.Passes[0].Process)
			}
		}
	})
	t.Run("the other takes over when the leader is killed", func(t *testing.T) {
		put := slices.IndexFunc(reference.run.Calls, func(c history.Call) bool { return c.What == "put new" })
		r := w.play(t, job{schedule: schedule{{kind: crashAfter, at: put}}, like: reference.run})
		if r.err != nil {
			t.Fatal(r.err)
		}
		led := reference.run.Calls[put].Process
		if !slices.ContainsFunc(r.run.Passes, func(p history.Pass) bool { return p.Process == 1-led }) {
			t.Errorf("process %d was killed and %d never reconciled", led, 1-led)
		}
		report := Report{}
		e.judge(&report, r, job{like: reference.run})
		for _, f := range report.Findings {
			t.Error(f.Text)
		}
	})
	t.Run("no schedule begins without the other process", func(t *testing.T) {
		p := &plan{scenario: e.scenario, reference: reference, pruned: map[Rule]int{}}
		jobs := p.crashes()
		for _, j := range jobs {
			if j.from != nil {
				t.Errorf("%s begins at a snapshot, without the other process", j.schedule)
			}
		}
	})
}
