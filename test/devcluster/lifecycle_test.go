package devcluster_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

// parentRole makes the test binary play a parent that starts a devcluster and
// does not care for it. Its value is the program.
const parentRole = "DEVCLUSTER_TEST_PARENT_OF"

// actAsParent starts a devcluster that shares its output and waits for it.
func actAsParent(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, os.Getenv(parentRole), "--with-parent")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	return cmd.Run()
}

// privateTemp is an environment with a folder for temporary files that nobody
// else uses, so that nothing in it means nothing left behind.
func privateTemp(t *testing.T) (env []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	return []string{"TMPDIR=" + dir}, dir
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("left behind: %s", filepath.Join(dir, e.Name()))
	}
}

// BenchmarkStart starts clusters. Five seconds each are the goal, on two idle processors.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		c := start(b, nil)
		b.ReportMetric(c.took.Seconds(), "s/ready")
		if err := c.terminate(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestReadyLine(t *testing.T) {
	t.Parallel()
	if !shared(t).Ready || shared(t).PID != shared(t).cmd.Process.Pid || !strings.HasPrefix(shared(t).URL, "https://127.0.0.1:") {
		t.Errorf("ready line: ready %v, pid %d, url %q; want true, %d, https on loopback", shared(t).Ready, shared(t).PID, shared(t).URL, shared(t).cmd.Process.Pid)
	}
	if shared(t).config.Insecure || len(shared(t).config.CAData) == 0 {
		t.Error("the kubeconfig does not check the server's certificate")
	}
	note, err := os.ReadFile(filepath.Join(shared(t).Data, "cluster.json"))
	if err != nil {
		t.Fatal(err)
	}
	var kept cluster
	if err := json.Unmarshal(note, &kept); err != nil {
		t.Fatal(err)
	}
	if kept.URL != shared(t).URL || kept.PID != shared(t).PID {
		t.Errorf("cluster.json says %s, want what the ready line says", note)
	}
}

// TestTwoClustersAtOnce starts two clusters that do not see each other. One of them is killed, and the next start removes what it
// has left, and nothing of the other one.
func TestTwoClustersAtOnce(t *testing.T) {
	t.Parallel()
	env, dir := privateTemp(t)
	type result struct {
		c   *cluster
		err error
	}
	results := make(chan result)
	for range 2 {
		go func() {
			c, err := launch(t.Context(), env)
			results <- result{c, err}
		}()
	}
	one, other := <-results, <-results
	if err := errors.Join(one.err, other.err); err != nil {
		t.Fatal(err)
	}
	killed, living := one.c, other.c
	if killed.URL == living.URL {
		t.Errorf("both are at %s", living.URL)
	}
	for i, c := range []*cluster{killed, living} {
		c.configMap(t, "default", "only-in-"+strconv.Itoa(i))
	}
	for i, c := range []*cluster{killed, living} {
		got, err := c.kube.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
		if err != nil || len(got.Items) != 1 || got.Items[0].Name != "only-in-"+strconv.Itoa(i) {
			t.Errorf("cluster %d holds %v (%v), want only its own object", i, got, err)
		}
	}

	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := killed.wait(); err == nil {
		t.Fatal("a killed process ended well")
	}
	if _, err := os.Stat(killed.Data); err != nil {
		t.Fatalf("nothing is left to sweep: %v", err)
	}
	next := start(t, env)
	if _, err := os.Stat(killed.Data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the killed one is still there: %v", err)
	}
	living.configMap(t, "default", "untouched")
	for _, c := range []*cluster{living, next} {
		if err := c.terminate(); err != nil {
			t.Error(err)
		}
	}
	wantEmpty(t, dir)
}

// TestSignalsLeaveNothing ends clusters that have just started, and counts the processor time that they took, whatever else the
// machine does. BenchmarkStart says how long a start takes by the clock.
func TestSignalsLeaveNothing(t *testing.T) {
	const most = 8 * time.Second // about twice what it takes
	t.Parallel()
	for name, signal := range map[string]os.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": os.Interrupt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, dir := privateTemp(t)
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			c := start(t, append(env, "GOMAXPROCS=1"), "--kubeconfig", kubeconfig) // a start costs more on several
			if c.Kubeconfig != kubeconfig {
				t.Errorf("kubeconfig at %q, want %q", c.Kubeconfig, kubeconfig)
			}
			if c.Seconds <= 0 || c.Seconds > c.took.Seconds() {
				t.Errorf("it says that it was ready after %.2f s, seen from outside it took %.2f s", c.Seconds, c.took.Seconds())
			}
			began := time.Now()
			if err := c.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := c.wait(); err != nil {
				t.Fatalf("it did not end in order: %v", err)
			}
			cost := c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
			t.Logf("ready after %.2f s, stopped after %.2f s; %.2f s of processor time", c.took.Seconds(), time.Since(began).Seconds(), cost.Seconds())
			if cost > most {
				t.Errorf("a start takes %s of processor time, want at most %s", cost, most)
			}
			wantEmpty(t, dir)
			wantEmpty(t, filepath.Dir(kubeconfig))
			if c.stderr.Len() > 0 {
				t.Errorf("on standard error: %s", c.stderr)
			}
		})
	}
}

// TestStopWhileStarting stops a start at the moments at which it has done a
// part of its work, told by the files that are there.
//
// Assumption: none of them is the last part, which takes a second.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"certificates are there": "pki/ca.crt",
		"the port is taken":      "port",
		"etcd is open":           "etcd/member/snap/db",
		"etcd listens":           "etcd.sock",
	} {
		t.Run(name, func(t *testing.T) {
			env, dir := privateTemp(t)
			starting := make(chan error, 1)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go func() {
				_, err := launch(ctx, env)
				starting <- err
			}()
			eventually(t, name, func(context.Context) error {
				found, err := filepath.Glob(filepath.Join(dir, "trimtab-devcluster-*", file))
				if err == nil && len(found) == 0 {
					err = errors.New("not yet")
				}
				return err
			})
			stop() // closes standard input
			err := <-starting
			if failed, ok := errors.AsType[*startError](err); !ok || failed.exit != 0 || failed.stderr != "" {
				t.Errorf("it did not end in order: %v", err)
			}
			wantEmpty(t, dir)
		})
	}
}

func TestKilledParentLeavesNothing(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env, dir := privateTemp(t)
	devcluster, err := controlplane.Binary(t.Context(), controlplane.Print(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), self)
	parent.Env = append(append(os.Environ(), env...), parentRole+"="+devcluster)
	// The read ends when no process has the other end any more: neither the
	// parent nor the devcluster.
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	parent.Stdout, parent.Stderr = w, os.Stderr
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("ready line %q: %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	if err := out.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Fatalf("the devcluster outlives its parent: %v", err)
	}
	wantEmpty(t, dir)
}

func TestDataSurvives(t *testing.T) {
	t.Parallel()
	env, temp := privateTemp(t)
	data := filepath.Join(t.TempDir(), "data")
	kept := filepath.Join(t.TempDir(), "copied-kubeconfig")

	first := start(t, env, "--data", data)
	first.configMap(t, "default", "kept")
	copyFile(t, first.Kubeconfig, kept)
	if err := first.terminate(); err != nil {
		t.Fatal(err)
	}
	wantEmpty(t, temp)
	if _, err := os.Stat(filepath.Join(data, "cluster.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a stopped cluster still has its note: %v", err)
	}

	second, err := launch(t.Context(), env, "--data", data)
	if err != nil {
		t.Fatal(err)
	}
	second.Kubeconfig = kept
	if err := second.connect(); err != nil {
		t.Fatal(err)
	}
	if _, err := second.kube.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("through a kubeconfig of the first start: %v", err)
	}
	if second.URL != first.URL {
		t.Errorf("the address changed from %s to %s", first.URL, second.URL)
	}

	// Killed, it may not stop in order, and the data is there all the same.
	second.configMap(t, "default", "written-before-the-kill")
	if err := second.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-second.gone
	third, err := launch(t.Context(), env, "--data", data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := third.kube.CoreV1().ConfigMaps("default").Get(t.Context(), "written-before-the-kill", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if err := third.terminate(); err != nil {
		t.Error(err)
	}
}

// TestAuditLog reads the log of a cluster in a data folder whose path is too long for a socket.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	data, file := filepath.Join(t.TempDir(), strings.Repeat("deep/", 20)), filepath.Join(t.TempDir(), "audit.jsonl")
	c := start(t, nil, "--data", data, "--audit-log", file)
	if c.Data != data {
		t.Errorf("data in %q, want %q", c.Data, data)
	}
	c.configMap(t, "default", "watched")
	if err := c.terminate(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found int
	for line := range bytes.Lines(content) {
		var e struct {
			Verb, Stage    string
			User           struct{ Username string }
			ObjectRef      struct{ Resource, Namespace, Name string }
			ResponseStatus struct{ Code int }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if e.Verb == "create" && e.ObjectRef.Resource == "configmaps" && e.ObjectRef.Name == "watched" {
			found++
			if e.User.Username != "admin" || e.ResponseStatus.Code != 201 || e.Stage != "ResponseComplete" {
				t.Errorf("audit event %s, want the administrator's create answered with 201", line)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d audit events for one request", found)
	}
}

func TestErrorsAreOneSentence(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		why  string
		args func(t *testing.T) []string
		says []string
	}{
		"second instance": {
			why:  "two etcds on the same files destroy them",
			args: func(t *testing.T) []string { return []string{"--data", shared(t).Data} },
			says: []string{"in use by process " + strconv.Itoa(shared(t).PID), "choose another folder"},
		},
		"taken port": {
			why: "the reason must not drown in a log",
			args: func(t *testing.T) []string {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.Close() })
				_, port, _ := net.SplitHostPort(l.Addr().String())
				return []string{"--port", port}
			},
			says: []string{"is taken", "choose another port"},
		},
		"impossible port": {
			why:  "found before anything starts",
			args: func(*testing.T) []string { return []string{"--port", "70000"} },
			says: []string{"70000", "65535"},
		},
		"unwritable folder": {
			why:  "also for root, so below a file",
			args: func(*testing.T) []string { return []string{"--data", "/dev/null/data"} },
			says: []string{`"/dev/null/data"`, "use a writable folder"},
		},
		"unwritable audit log": {
			why:  "an audit log that nobody writes proves nothing",
			args: func(*testing.T) []string { return []string{"--audit-log", "/dev/null/audit"} },
			says: []string{"audit log", "use a writable file"},
		},
		"unwritable log": {
			why:  "a log that was asked for is wanted",
			args: func(*testing.T) []string { return []string{"--log", "/dev/null/log"} },
			says: []string{"open the log", "use a writable file"},
		},
		"foreign kubeconfig": {
			why: "somebody's way into production is not overwritten",
			args: func(t *testing.T) []string {
				file := filepath.Join(t.TempDir(), "config")
				if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				return []string{"--kubeconfig", file}
			},
			says: []string{"was not written by devcluster", "choose another file"},
		},
		"damaged data": {
			why: "etcd would panic in a goroutine of its own",
			args: func(t *testing.T) []string {
				data := t.TempDir()
				writeFile(t, filepath.Join(data, "etcd", "member", "wal", "0000000000000000-0000000000000000.wal"), strings.Repeat("x", 4096))
				writeFile(t, filepath.Join(data, "etcd", "member", "snap", "db"), strings.Repeat("x", 65536))
				return []string{"--data", data}
			},
			says: []string{"is damaged", "restore it from a copy, or remove it"},
		},
		"fewer than no nodes": {
			why:  "-1 is none",
			args: func(*testing.T) []string { return []string{"--nodes", "-2"} },
			says: []string{"-nodes -2", "use -1 for none"},
		},
		"unknown argument": {
			why:  "a forgotten dash is not ignored",
			args: func(*testing.T) []string { return []string{"data"} },
			says: []string{`unexpected argument "data"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			env, dir := privateTemp(t)
			c, err := launch(t.Context(), env, tc.args(t)...)
			if err == nil {
				t.Fatalf("it started at %s; %s", c.URL, tc.why)
			}
			failed, ok := errors.AsType[*startError](err)
			if !ok {
				t.Fatal(err)
			}
			if failed.exit != 1 {
				t.Errorf("exit code %d, want 1", failed.exit)
			}
			text, newline := strings.CutSuffix(failed.stderr, "\n")
			if !newline || strings.Contains(text, "\n") || !strings.HasPrefix(text, "devcluster: ") {
				t.Errorf("standard error is not one line:\n%s", failed.stderr)
			}
			for _, part := range tc.says {
				if !strings.Contains(text, part) {
					t.Errorf("%q does not say %q; %s", text, part, tc.why)
				}
			}
			wantEmpty(t, dir)
		})
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, string(content))
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
