package opertest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a running operator.
type Process struct {
	t     testing.TB
	cmd   *exec.Cmd
	ended chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// stopWithin is more than an operator gives itself to stop.
const stopWithin = 40 * time.Second

// Start runs the operator as account with flags of its manager. It serves nothing but its
// health, on a free port, so that several run beside each other; flags may say otherwise.
// A test that fails shows its log. When the test ends, it is killed.
func (b Binary) Start(t testing.TB, account Account, flags ...string) *Process {
	t.Helper()
	args := []string{"manager", "--kubeconfig", account.Kubeconfig, "--metrics-address=0", "--health-address=127.0.0.1:0", "--debug-address=0"}
	p := &Process{t: t, cmd: b.command(t, append(args, flags...)), ended: make(chan struct{})}
	p.cmd.Stderr = p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended is up to the test
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the operator's log:\n%s", p.Log())
		}
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

// Ended is closed once the process is dead.
func (p *Process) Ended() <-chan struct{} { return p.ended }

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

// Ready waits until the operator says that it is ready.
func (p *Process) Ready() {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond) // there is nothing to watch
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for last := "does not say where to ask"; ; {
		if url := p.health(); url != "" {
			if last = answer(p.t, url+"/readyz"); last == "" {
				return
			}
		}
		select {
		case <-tick.C:
		case <-p.ended:
			p.t.Fatal("the operator ended before it was ready")
		case <-deadline:
			p.t.Fatalf("the operator is not ready after 30 s: %s", last)
		}
	}
}

// health is the address that the operator says it answers at; empty before it did.
func (p *Process) health() string {
	for text := range strings.Lines(p.Log()) {
		var line struct {
			Msg     string `json:"msg"`
			Address string `json:"health-address"`
		}
		if json.Unmarshal([]byte(text), &line) == nil && line.Msg == "starting" {
			return "http://" + line.Address
		}
	}
	return ""
}

// answer is what url answers if it is not OK, and empty if it is.
func answer(t testing.TB, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err.Error()
	case resp.StatusCode == http.StatusOK:
		return ""
	}
	return string(body)
}

// Write takes a part of the operator's log.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

// Log is what the operator said so far.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}
