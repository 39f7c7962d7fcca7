package operatortest

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Process is an operator that runs as a process.
type Process struct {
	output
	cmd *exec.Cmd
}

// stopWithin is more than an operator gives itself to stop.
const stopWithin = 40 * time.Second

// Start runs the operator as account with flags of its manager. It serves nothing but its
// health, on a free port, so that several run beside each other; flags may say otherwise.
// A test that fails shows its log. When the test ends, it is killed.
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
		_ = p.cmd.Wait() // how it ended is up to the test
	}()
	t.Cleanup(func() {
		p.Kill()
		p.show()
	})
	return p
}

// command outlives the test's own context, which ends before its cleanups.
func (b Binary) command(t testing.TB, args []string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), b.Path, args...)
	cmd.Env = append(os.Environ(), b.Env...)
	return cmd
}

// Kill ends it by SIGKILL and returns when it is dead. Safe to repeat, and to call from any
// goroutine.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // dead already is dead
	<-p.ended
}

// Stop ends it by SIGTERM and waits until it is gone in order.
func (p *Process) Stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatalf("stop the operator: %v", err)
	}
	select {
	case <-p.ended:
	case <-time.After(stopWithin):
		p.t.Fatalf("the operator still runs %s after SIGTERM", stopWithin)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("the operator ended with exit code %d", code)
	}
}
