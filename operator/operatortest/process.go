package operatortest

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/internal/poll"
)

// Process is an operator that runs as a separate process.
type Process struct {
	output
	cmd *exec.Cmd
}

// Start runs the operator as account, with the given flags of its manager. Unless the flags say
// otherwise, it serves only its health endpoints, on a free port, so that several operators can run
// at the same time. If the test fails, it shows the log. The process is killed when the test ends.
func (b Binary) Start(t testing.TB, account Account, flags ...string) *Process {
	t.Helper()
	args := append([]string{"manager"}, arguments(account)...)
	p := &Process{output: output{t: t, ended: make(chan struct{})}, cmd: b.command(t, append(args, flags...))}
	p.cmd.Stderr = &p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the test checks how it ended
	}()
	t.Cleanup(func() {
		p.Kill()
		p.show()
	})
	return p
}

// command uses a context that outlives that of the test, which ends before its cleanups run.
func (b Binary) command(t testing.TB, args []string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), b.Path, args...)
	cmd.Env = append(os.Environ(), b.Env...)
	return cmd
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill sends SIGKILL and returns when the process has ended. It may be called more than once and
// from any goroutine.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error means that it has already ended
	<-p.ended
}

// Stop sends SIGTERM and waits until the process has ended. The test fails if it ends with an error.
func (p *Process) Stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatalf("stop the operator: %v", err)
	}
	select {
	case <-p.ended:
	case <-time.After(poll.Patience): // an operator's own limit is 30 s
		p.t.Fatalf("the operator is still running %s after SIGTERM", poll.Patience)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("the operator ended with exit code %d", code)
	}
}
