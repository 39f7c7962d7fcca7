//go:build unix

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func start(t *testing.T, ctx context.Context, how string, o Options) (*Cluster, error) {
	t.Helper()
	t.Setenv(envPretend, how)
	t.Setenv("TMPDIR", t.TempDir())
	o.Binary = os.Args[0]
	return Start(ctx, o)
}

// gone checks that neither process nor temporary file is left.
func gone(t *testing.T, c *Cluster) {
	t.Helper()
	if c != nil {
		if err := syscall.Kill(c.PID, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there: %v", c.PID, err)
		}
	}
	if left := names(t, os.TempDir()); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	for _, how := range []string{"works", "untidy", "dies"} {
		t.Run(how, func(t *testing.T) {
			c, err := start(t, t.Context(), how, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if c.Config.Host != c.URL || c.Config.QPS != -1 {
				t.Errorf("client configuration is for %q at %v requests a second", c.Config.Host, c.Config.QPS)
			}
			if err := errors.Join(c.Stop(), c.Stop()); err != nil {
				t.Error(err)
			}
			gone(t, c)
		})
	}
}

func TestDataSurvives(t *testing.T) {
	data := t.TempDir()
	c, err := start(t, t.Context(), "works", Options{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	gone(t, c)
	if _, err := os.Stat(filepath.Join(data, "kubeconfig")); err != nil {
		t.Error(err)
	}
}

func TestContextEndsCluster(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := start(t, ctx, "works", Options{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	_ = c.Stop() // waits until the folder is gone too
	gone(t, c)
}

func TestContextEndsStart(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("changed my mind")
	cancel(why)
	c, err := start(t, ctx, "hangs", Options{})
	if !errors.Is(err, why) {
		t.Errorf("error is %v, want the context's cause", err)
	}
	gone(t, c)
}

func TestStartErrors(t *testing.T) {
	tests := map[string]struct{ why, how, says string }{
		"complaint":    {"its own sentence is the reason", "fails", "the control plane ended: port 7 is taken"},
		"silent":       {"nothing else to go by", "silent", "ended before it was ready, without a word"},
		"not a server": {"somebody's other binary", "babbles", `answered "usage: something else"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := start(t, t.Context(), tt.how, Options{})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error is %v, want %q in it; %s", err, tt.says, tt.why)
			}
			gone(t, nil)
		})
	}
}

func TestStartErrorsNameTheVariable(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	write(t, broken, "neither a script nor a program")
	if err := os.Chmod(broken, 0o700); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	write(t, text, "x")
	for name, tt := range map[string]struct{ why, path, how string }{
		"no program":    {"the system's word for it is obscure", broken, "works"},
		"not a server":  {"somebody's other binary", os.Args[0], "babbles"},
		"a mere text":   {"a source file, say", text, "works"},
		"no such thing": {"a typing error", text + "x", "works"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(EnvBinary, tt.path)
			t.Setenv(envPretend, tt.how)
			_, err := Start(t.Context(), Options{})
			if err == nil || !strings.Contains(err.Error(), EnvBinary) || !strings.Contains(err.Error(), tt.path) {
				t.Errorf("error is %v, want %s and the path in it; %s", err, EnvBinary, tt.why)
			}
		})
	}
}

func TestStartNamesTheFolderForTemporaryFiles(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	if _, err := Start(t.Context(), Options{Binary: os.Args[0]}); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("error is %v, want TMPDIR in it", err)
	}
}

// TestKilledGoCommand is an interrupt that the go command hears before we do.
func TestKilledGoCommand(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "go")
	write(t, tool, "#!/bin/sh\nkill -INT $$\n")
	if err := os.Chmod(tool, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, src := range map[string]source{
		"checkout":  checkout(t, "package main\n\nfunc main() {}\n"),
		"published": {version: "v0.3.1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t.TempDir(), nil)
			b.goTool = tool
			_, err := b.binary(t.Context(), src)
			if err == nil || !strings.Contains(err.Error(), "signal: interrupt") || strings.Contains(err.Error(), "proxy") {
				t.Errorf("error is %v, want the signal and no word of a proxy", err)
			}
		})
	}
}

func TestWaitReturnsTheCause(t *testing.T) {
	c, err := start(t, t.Context(), "dies", Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Stop()
	if err := c.Wait(); err == nil || err.Error() != "the control plane ended: etcd is gone" {
		t.Errorf("error is %v", err)
	}
}

func TestKilledParent(t *testing.T) {
	tmp := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(cmd.Environ(), envPretend+"=parent", "TMPDIR="+tmp)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{}
	if _, err := fmt.Fscan(stdout, &c.PID, &c.Data); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	t.Setenv("TMPDIR", tmp)
	eventually(t, "the orphan to end", func() bool {
		return errors.Is(syscall.Kill(c.PID, 0), syscall.ESRCH) && len(names(t, tmp)) == 0
	})
	gone(t, c)
}

func TestHoldKeepsLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	mine := open()
	if got, err := TryLock(mine); !got || err != nil {
		t.Fatalf("first lock: %v, %v", got, err)
	}
	c, err := start(t, t.Context(), "works", Options{Hold: mine})
	if err != nil {
		t.Fatal(err)
	}
	_ = mine.Close()
	if got, err := TryLock(open()); got || err != nil {
		t.Errorf("while the process lives: got the lock %v, %v", got, err)
	}
	_ = c.Stop()
	if got, err := TryLock(open()); !got || err != nil {
		t.Errorf("afterwards: got the lock %v, %v", got, err)
	}
}
