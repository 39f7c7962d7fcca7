package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
	"github.com/trimtab-dev/trimtab/internal/poll"
)

// user is somebody with a cache of their own and the control plane built already.
type user struct {
	t   *testing.T
	tmp string
}

func newUser(t *testing.T) user {
	t.Helper()
	binary, err := controlplane.Binary(t.Context(), controlplane.Print(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	u := user{t: t, tmp: t.TempDir()}
	t.Setenv(controlplane.EnvBinary, binary)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("TMPDIR", u.tmp)
	return u
}

// run runs a command to its end.
func (u user) run(args ...string) (code int, out, err string) {
	u.t.Helper()
	return runCLI(u.t.Context(), args...)
}

func runCLI(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = Main(ctx, args, Streams{In: strings.NewReader(""), Out: &out, Err: &err})
	return code, out.String(), err.String()
}

// must runs a command that has to succeed and answers what it printed.
func (u user) must(args ...string) string {
	u.t.Helper()
	code, out, err := u.run(args...)
	if code != 0 {
		u.t.Fatalf("trimtab %s: exit code %d\n%s", strings.Join(args, " "), code, err)
	}
	return out
}

func (u user) status() clusterStatus {
	u.t.Helper()
	var s clusterStatus
	if err := json.Unmarshal([]byte(u.must("cluster", "status", "-o", "json")), &s); err != nil {
		u.t.Fatal(err)
	}
	return s
}

// clean checks that no temporary file is left and nothing is known of a cluster.
func (u user) clean() {
	u.t.Helper()
	home := filepath.Join(os.Getenv("XDG_CACHE_HOME"), "trimtab", "cluster")
	for _, dir := range []string{u.tmp, home} {
		entries, err := os.ReadDir(dir)
		if dir == home && errors.Is(err, fs.ErrNotExist) {
			continue // what was refused at once has not even made the folder
		}
		if err != nil {
			u.t.Fatal(err)
		}
		for _, e := range entries {
			if dir != home || e.Name() != "lock" { // which a command makes when it comes to it, and leaves
				u.t.Errorf("left in %s: %s", dir, e.Name())
			}
		}
	}
	if s := u.status(); s.State != "stopped" {
		u.t.Errorf("status is %q, want stopped", s.State)
	}
}

// screen is a writer that can be waited for.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(poll.Patience)
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.more:
		case <-deadline:
			t.Fatalf("waited for %q on the screen:\n%s", text, s)
		}
	}
}

// foreground runs `cluster up` until the returned function, which answers the exit code.
func (u user) foreground(args ...string) (s *screen, interrupt, wait func() int) {
	u.t.Helper()
	ctx, cancel := context.WithCancel(u.t.Context())
	s = &screen{more: make(chan struct{}, 1)}
	code := make(chan int, 1)
	go func() {
		code <- Main(ctx, append([]string{"cluster", "up"}, args...), Streams{In: strings.NewReader(""), Out: s, Err: s})
	}()
	return s, func() int { cancel(); return <-code }, func() int { defer cancel(); return <-code }
}

func TestUpUntilInterrupted(t *testing.T) {
	u := newUser(t)
	s, interrupt, _ := u.foreground()
	s.await(t, "Ctrl-C")
	if got := u.status(); got.State != "ready" || got.Cluster.Version == "" || got.Cluster.Kept {
		t.Errorf("status is %+v, want a ready cluster whose data goes", got)
	}
	kubeconfig := strings.TrimSpace(u.must("cluster", "kubeconfig"))
	if !strings.Contains(s.String(), "export KUBECONFIG="+kubeconfig) {
		t.Errorf("the screen does not name the kubeconfig %q:\n%s", kubeconfig, s)
	}
	code, _, err := u.run("cluster", "up")
	if url := u.status().Cluster.URL; code != 1 || !strings.Contains(err, "already running at "+url) || !strings.Contains(err, "cluster down") {
		t.Errorf("a second up: exit code %d, %q; want who is in the way and the way out", code, err)
	}
	if code := interrupt(); code != 0 {
		t.Errorf("after Ctrl-C: exit code %d\n%s", code, s)
	}
	if !strings.HasSuffix(s.String(), "stopped\n") {
		t.Errorf("the last word is not that it stopped:\n%s", s)
	}
	u.clean()
}

func TestDownEndsForeground(t *testing.T) {
	u := newUser(t)
	s, _, wait := u.foreground()
	s.await(t, "Ctrl-C")
	u.must("cluster", "down")
	if code := wait(); code != 0 {
		t.Errorf("exit code %d after an end that was asked for\n%s", code, s)
	}
	u.clean()
}

func TestInterruptedStartLeavesNothing(t *testing.T) {
	u := newUser(t)
	s, interrupt, _ := u.foreground()
	s.await(t, "Kubernetes control plane on this machine")
	if code := interrupt(); code != 1 {
		t.Errorf("exit code %d, want 1: what was asked for did not come about", code)
	}
	if want := "trimtab: interrupted; nothing is left behind\n"; !strings.HasSuffix(s.String(), want) {
		t.Errorf("the screen does not end in %q:\n%s", want, s)
	}
	u.clean()
}

func TestDetachedClusterWithData(t *testing.T) {
	u := newUser(t)
	data := filepath.Join(t.TempDir(), "data")
	t.Cleanup(func() { runCLI(context.WithoutCancel(t.Context()), "cluster", "down") })

	u.must("cluster", "up", "--detach", "--data", data)
	ready := u.status()
	if ready.State != "ready" || !ready.Cluster.Kept || ready.Cluster.Data != data {
		t.Fatalf("status is %+v, want a ready cluster that keeps %s", ready, data)
	}
	first := ready.Cluster
	u.must("cluster", "down")
	u.must("cluster", "down") // once more is no error
	u.clean()

	u.must("cluster", "up", "--detach", "--data", data)
	second := u.status().Cluster
	if second.URL != first.URL {
		t.Errorf("after a restart the server is at %s, was at %s: kubeconfigs that people copied are void", second.URL, first.URL)
	}

	// The control plane dies without a word.
	if err := syscall.Kill(second.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(poll.Patience)
	for u.status().State != "stopped" {
		select {
		case <-deadline:
			t.Fatal("the status still says that a dead cluster runs")
		default:
		}
	}
	if code, _, err := u.run("cluster", "kubeconfig"); code != 1 || !strings.Contains(err, "trimtab cluster up") {
		t.Errorf("kubeconfig of a dead cluster: exit code %d, %q; want the way out", code, err)
	}
	u.must("cluster", "up", "--detach", "--data", data)
	u.must("cluster", "down")
	u.clean()
}

func TestUpRemovesWhatAKilledClusterLeft(t *testing.T) {
	u := newUser(t)
	h, err := openHome()
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(u.tmp, "left")
	kept := filepath.Join(t.TempDir(), "kept")
	for _, r := range []record{
		{Cluster: controlplane.Cluster{PID: 1, Data: left}},
		{Cluster: controlplane.Cluster{PID: 1, Data: kept}, Kept: true},
	} {
		if err := os.MkdirAll(r.Data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := h.write(r); err != nil {
			t.Fatal(err)
		}
		if err := h.clear(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("the temporary data of a killed cluster stays for ever")
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("data that was to be kept: %v", err)
	}
}

// TestDownAfterAKill leaves nothing that tells of a cluster, whatever its record looks like.
func TestDownAfterAKill(t *testing.T) {
	u := newUser(t)
	h, err := openHome()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ why, record string }{
		"kept":       {"its data is its user's", `{"pid": 1, "data": "/nowhere", "kept": true}`},
		"unreadable": {"a full disk may have cut it", `{"pid": 1, "da`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for file, text := range map[string]string{h.record(): tt.record, h.kubeconfig(): "x", filepath.Join(h.dir, "lock"): ""} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := u.status().State; got != "stopped" {
				t.Errorf("status is %q, want stopped: nobody holds the lock; %s", got, tt.why)
			}
			u.must("cluster", "down")
			u.clean()
		})
	}
}

// TestUnreadableRecord is told of by the file's name while a cluster runs.
func TestUnreadableRecord(t *testing.T) {
	u := newUser(t)
	h, err := openHome()
	if err != nil {
		t.Fatal(err)
	}
	lock, err := h.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := os.WriteFile(h.record(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, err := u.run("cluster", "kubeconfig"); code != 1 || !strings.Contains(err, h.record()) {
		t.Errorf("exit code %d, %q; want the file's name", code, err)
	}
}

func TestUpErrors(t *testing.T) {
	u := newUser(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused := filepath.Join(t.TempDir(), "refused.yaml")
	if err := os.WriteFile(refused, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A_B}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		why  string
		args []string
		says []string
	}{
		"no such file":    {"nothing is started in vain", []string{"cluster", "up", "--apply", file + "x"}, []string{"--apply " + file + "x: no such file"}},
		"no object":       {"a folder is mistaken for another", []string{"cluster", "up", "--apply", t.TempDir()}, []string{"there is no object; name a file or a folder with objects in YAML or JSON"}},
		"refused object":  {"the cluster would lack an object that the user asked for", []string{"cluster", "up", "--detach", "--apply", refused}, []string{"apply ConfigMap A_B: ", "Invalid value"}},
		"taken port":      {"the port is what to change", []string{"cluster", "up", "--port", port}, []string{port, "taken"}},
		"no port":         {"people do not parse", []string{"cluster", "up", "--port", "abc"}, []string{`--port: "abc" is not a number`}},
		"fewer than none": {"-1 is none", []string{"cluster", "up", "--nodes", "-5"}, []string{"--nodes -5: use -1 for none, or a positive number"}},
		"unwritable data": {"the folder is what to change", []string{"cluster", "up", "--data", filepath.Join(file, "data")}, []string{filepath.Join(file, "data")}},
		"unknown output":  {"json is all there is", []string{"cluster", "status", "-o", "yaml"}, []string{`-o yaml`, "json"}},
		"unknown command": {"a typing error", []string{"cluster", "upp"}, []string{`"upp"`}},
		"no cluster":      {"the first thing to try", []string{"cluster", "kubeconfig"}, []string{"trimtab cluster up"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, out, err := u.run(tt.args...)
			if code != 1 || out != "" {
				t.Errorf("exit code %d and %q, want 1 and nothing; %s", code, out, tt.why)
			}
			lines := strings.Split(strings.TrimSpace(err), "\n")
			last := lines[len(lines)-1]
			for _, want := range append(tt.says, "trimtab: ") {
				if !strings.Contains(last, want) {
					t.Errorf("the last line %q does not say %q; %s", last, want, tt.why)
				}
			}
			u.clean()
		})
	}
}

func TestUnwritableCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", file)
	code, _, err := runCLI(t.Context(), "cluster", "up")
	if code != 1 || !strings.Contains(err, "XDG_CACHE_HOME") {
		t.Errorf("exit code %d, %q; want the variable that helps", code, err)
	}
}

func TestVersion(t *testing.T) {
	code, out, _ := runCLI(t.Context(), "version")
	if code != 0 || !strings.HasPrefix(out, "trimtab ") {
		t.Errorf("exit code %d, %q", code, out)
	}
}
