//go:build unix

package fault

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// stopVariable makes the process that has it in its environment one that a signal stops, after so many starts of the operator.
const stopVariable = "FAULT_TEST_STOP"

// TestStop proves that a signal that asks the process to end loses nothing that was found: the test fails with it, says how to
// go on, and plays no other scenario.
func TestStop(t *testing.T) {
	if name := os.Getenv(stopVariable); name != "" {
		stopMyself(t, name)
		return
	}
	for name, after := range map[string]string{"SIGTERM": "schedules", "SIGINT": "schedules", "SIGINT early": "undisturbed"} {
		t.Run(name, func(t *testing.T) {
			self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStop$", "-test.v")
			self.Env = append(os.Environ(), stopVariable+"="+name)
			var out bytes.Buffer
			self.Stdout, self.Stderr = &out, &out
			if err := self.Run(); err == nil {
				t.Error("the test passed although it was stopped")
			}
			signal, _, _ := strings.Cut(name, " ")
			want := []string{"--- FAIL: TestStop/next", `scenario "toy": not all was played, ` + signal + ` stopped it`}
			if after == "schedules" {
				want = append(want,
					"schedules were not played, "+name+" stopped it; go on with -fault.resume='toy@",
					"replay: go test", "(I2, no leak)", `scenario "toy": `+name+` stopped it before all was played`, name+" came: what was found")
			}
			for _, w := range want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("nothing says %q:\n%s", w, out.String())
				}
			}
		})
	}
}

// stopMyself is what the process does that is stopped.
func stopMyself(t *testing.T, name string) {
	number, after := syscall.SIGTERM, int32(60)
	if strings.HasPrefix(name, "SIGINT") {
		number = syscall.SIGINT
	}
	if strings.HasSuffix(name, "early") {
		after = 1
	}
	s := toyLife("finalizer first")
	var starts atomic.Int32
	inner := s.Operator.SetUp
	s.Operator.SetUp = func(mgr ctrl.Manager, env *Env) error {
		if starts.Add(1) == after {
			_ = syscall.Kill(os.Getpid(), number)
		}
		return inner(mgr, env)
	}
	t.Run("first", func(t *testing.T) { Run(t, s, Only(Crashes, Faults), Workers(1)) })
	t.Run("next", func(t *testing.T) { Run(t, s) })
}

// TestDeadline proves that the runs with which schedules are planned and made shorter end before the test's deadline, too, and
// that what was found before is reported.
func TestDeadline(t *testing.T) {
	e, _ := prepared(t, toyLife("finalizer first"))
	e.clock.last = time.Now().Add(-time.Second)
	if _, err := e.jobsOf(Races); !isOver(err) {
		t.Errorf("after the deadline, races were planned: %v", err)
	}
	if _, err := e.wholly(e.quietRace(e.plan.QuietRaces()[0])); !isOver(err) {
		t.Errorf("after the deadline, a run was played: %v", err)
	}
	e.stopBefore(overAt(e.clock.last))
	if e.report.Unplayed == 0 || len(e.report.Notes) == 0 || !strings.Contains(e.report.Notes[0], "the time was over: it ended in the runs that come before") {
		t.Errorf("nothing says that no schedule was played: %d, %q", e.report.Unplayed, e.report.Notes)
	}
}
