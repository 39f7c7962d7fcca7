package fault

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// TestReplicas plays two processes at a time, of which one leads.
func TestReplicas(t *testing.T) {
	s := toyLife("")
	s.Replicas = 2
	s.Operator.Manager = manager.Options{LeaderElection: true, LeaderElectionID: "toy"}
	e, w := prepared(t, s)

	t.Run("one of them leads", func(t *testing.T) {
		if n := len(e.reference.Run.Processes); n != 2 {
			t.Fatalf("%d processes ran, want 2", n)
		}
		for _, p := range e.reference.Run.Passes {
			if p.Process != e.reference.Run.Passes[0].Process {
				t.Errorf("process %d reconciled while %d led", p.Process, e.reference.Run.Passes[0].Process)
			}
		}
	})
	t.Run("the other takes over when the leader is killed", func(t *testing.T) {
		put := slices.IndexFunc(e.reference.Run.Calls, func(c history.Call) bool { return c.What == "put new" })
		r := w.Play(t, run.Job{Schedule: schedule.Schedule{{Kind: schedule.CrashAfter, At: put}}, Like: e.reference.Run})
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		led := e.reference.Run.Calls[put].Process
		if !slices.ContainsFunc(r.Run.Passes, func(p history.Pass) bool { return p.Process == 1-led }) {
			t.Errorf("process %d was killed and %d never reconciled", led, 1-led)
		}
		e.find(run.Job{Like: e.reference.Run}, r)
		for _, f := range e.report.Findings {
			t.Error(f.Text)
		}
	})
	t.Run("no schedule begins without the other process", func(t *testing.T) {
		jobs := e.plan.Crashes()
		for _, j := range jobs {
			if j.From != nil {
				t.Errorf("%s begins at a snapshot, without the other process", j.Schedule)
			}
		}
	})
}
