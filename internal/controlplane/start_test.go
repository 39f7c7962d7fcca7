//go:build unix

package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// envPretend makes this test binary behave as a devcluster, in the way that it names.
const envPretend = "TRIMTAB_TEST_PRETEND"

func TestMain(m *testing.M) {
	switch how := os.Getenv(envPretend); how {
	case "":
		goleak.VerifyTestMain(m)
	case "parent":
		parent()
	default:
		os.Exit(pretend(how))
	}
}

// pretend keeps devcluster's side of the contract, without a cluster.
func pretend(how string) int {
	data := flag.String("data", "", "")
	kubeconfig := flag.String("kubeconfig", "", "")
	flag.Bool("with-parent", false, "")
	flag.Parse()
	switch how {
	case "fails":
		fmt.Fprintln(os.Stderr, "some component logs\ndevcluster: port 7 is taken\nand another one")
		return 1
	case "hangs":
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "babbles":
		fmt.Println("usage: something else")
		return 0
	}
	temporary := *data == ""
	if temporary {
		*data, _ = os.MkdirTemp("", "pretended-*")
	}
	if *kubeconfig == "" {
		*kubeconfig = filepath.Join(*data, "kubeconfig")
	}
	const text = `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:7"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	_ = os.WriteFile(*kubeconfig, []byte(text), 0o600)
	line, _ := json.Marshal(map[string]any{"ready": true, "url": "https://127.0.0.1:7", "kubeconfig": *kubeconfig, "version": "v1.37.1", "pid": os.Getpid(), "seconds": 0.1, "data": *data})
	fmt.Println(string(line))
	_, _ = io.Copy(io.Discard, os.Stdin)
	if temporary && how != "untidy" {
		_ = os.RemoveAll(*data)
	}
	if how == "dies" {
		fmt.Fprintln(os.Stderr, "devcluster: etcd is gone")
		return 1
	}
	return 0
}

// parent starts a pretended devcluster, says where, and waits to be killed.
func parent() {
	os.Setenv(envPretend, "works")
	c, err := Start(context.Background(), Options{Binary: os.Args[0]})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.PID, c.Data)
	select {}
}

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
		"complaint":    {"its own sentence is the reason", "fails", "control plane: port 7 is taken"},
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

func TestWaitTellsWhy(t *testing.T) {
	c, err := start(t, t.Context(), "dies", Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Stop()
	if err := c.Wait(); err == nil || err.Error() != "control plane: etcd is gone" {
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
