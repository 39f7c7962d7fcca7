package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/internal/gobuild"
	"github.com/trimtab-dev/trimtab/internal/poll"
)

// demoFolder is the folder for what a demo writes. The demo builds programs.
func demoFolder(t *testing.T) string {
	t.Helper()
	demoBuilds.Do(func() { gobuild.Builds(t, "../../../..", demoPackage, operatorPackage) })
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	return folder
}

// demoBuilds tells go test once what the demo is built from: what one test reads counts for all tests of the package.
var demoBuilds sync.Once

// TestDemo runs the demo as users do and checks its report.
func TestDemo(t *testing.T) {
	folder := demoFolder(t)
	var out, errOut bytes.Buffer
	if code := Main(t.Context(), []string{"demo", "--once", "-o", "json"}, Streams{Out: &out, Err: &errOut}); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &errOut)
	}
	var report struct {
		OK      bool
		Steps   []struct{ OK bool }
		Objects map[string]struct{ KubernetesWrites, NATSWrites int }
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v in:\n%s", err, &out)
	}
	if !report.OK || len(report.Steps) != 8 {
		t.Errorf("ok %t with %d steps, want true and 8", report.OK, len(report.Steps))
	}
	for i, s := range report.Steps {
		if !s.OK {
			t.Errorf("step %d is not ok", i+1)
		}
	}
	if got := report.Objects["Stream/payments"]; got.NATSWrites != 2 || got.KubernetesWrites == 0 {
		t.Errorf("stream payments, killed during create: %+v, want one create, one delete, and writes counted", got)
	}
	for _, line := range []string{"Creating → Succeeded", "spec.maxMsgs is 7, want 1000", "killed:"} {
		if !strings.Contains(errOut.String(), line) {
			t.Errorf("nobody was shown %q", line)
		}
	}
	empty(t, folder)
}

// TestDemoInterrupted stops the demo while the operator runs.
func TestDemoInterrupted(t *testing.T) {
	folder := demoFolder(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	errOut := &watched{text: "ServiceAccount", seen: stop}
	if code := Main(ctx, []string{"demo", "--once", "-o", "json"}, Streams{Out: io.Discard, Err: errOut}); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if !strings.HasSuffix(errOut.String(), "trimtab: interrupted; nothing is left behind\n") {
		t.Errorf("the last line is not about the interruption:\n%s", errOut)
	}
	empty(t, folder)
}

// TestDemoStaysUp ends the demo as the screen says.
func TestDemoStaysUp(t *testing.T) {
	folder := demoFolder(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &watched{text: "Ctrl-C deletes", seen: stop}
	if code := Main(ctx, []string{"demo"}, Streams{Out: out, Err: out}); code != 0 {
		t.Errorf("exit code %d, want 0: Ctrl-C is how it is meant to end", code)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "✔ delete everything") {
		t.Errorf("the last line is %q, want that everything was deleted:\n%s", last, out)
	}
	empty(t, folder)
}

// TestDemoLosesItsParts kills what the demo consists of.
func TestDemoLosesItsParts(t *testing.T) {
	tests := map[string]struct{ why, program, at, says string }{
		"control plane in a step": {"the step fails for no reason of its own", "devcluster", "✔ operator", ": the control plane ended: signal: killed\n"},
		"control plane at rest":   {"nothing else would tell", "devcluster", "Ctrl-C deletes", "trimtab demo: the control plane ended: signal: killed\n"},
		"the demo itself":         {"it cannot tell", "trimtab-demo", "✔ operator", "trimtab: the demo was killed (signal: killed); everything it had started ends with it\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			folder := demoFolder(t)
			out := &watched{text: tt.at, seen: sync.OnceFunc(func() { killProgram(t, tt.program, folder) })}
			if code := Main(t.Context(), []string{"demo"}, Streams{Out: out, Err: out}); code != 1 {
				t.Errorf("exit code %d, want 1; %s", code, tt.why)
			}
			if got := out.String(); !strings.HasSuffix(got, tt.says) || strings.Count(got, "the control plane ended") > 1 {
				t.Errorf("the screen does not end in %q, said once; %s:\n%s", tt.says, tt.why, got)
			}
			tick := time.NewTicker(20 * time.Millisecond) // orphans tell nobody of their end
			defer tick.Stop()
			for deadline := time.Now().Add(poll.Patience); !isEmpty(t, folder) && time.Now().Before(deadline); {
				<-tick.C
			}
			empty(t, folder)
		})
	}
}

// killProgram kills the process of a program that was given a file in folder.
func killProgram(t *testing.T, program, folder string) {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(commands) == 0 {
		t.Skip("processes cannot be looked up here")
	}
	for _, file := range commands {
		text, err := os.ReadFile(file)
		args := strings.Split(string(text), "\x00")
		if err != nil || filepath.Base(args[0]) != program || !strings.Contains(string(text), folder) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Error(err)
			return
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		return
	}
	t.Errorf("no process of %s has to do with %s", program, folder)
}

// TestDemoWithoutReader is `trimtab demo --once | head`.
func TestDemoWithoutReader(t *testing.T) {
	folder := demoFolder(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	go func() {
		defer r.Close()
		lines := bufio.NewScanner(r)
		for lines.Scan() && !strings.Contains(lines.Text(), "✔ control plane") {
		}
	}()
	var errOut bytes.Buffer
	if code := Main(t.Context(), []string{"demo", "--once"}, Streams{Out: w, Err: &errOut}); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if want := "cannot write output"; strings.Count(errOut.String(), want) != 1 {
		t.Errorf("the error is %q, want %q in it once", &errOut, want)
	}
	empty(t, folder)
}

func TestDemoOutputFormat(t *testing.T) {
	var errOut bytes.Buffer
	code := Main(t.Context(), []string{"demo", "-o", "xml"}, Streams{Out: io.Discard, Err: &errOut})
	if want := "trimtab: -o xml: use json, or omit -o\n"; code != 1 || errOut.String() != want {
		t.Errorf("exit code %d, %q; want 1, %q", code, &errOut, want)
	}
}

func isEmpty(t *testing.T, folder string) bool {
	t.Helper()
	left, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return len(left) == 0
}

// empty asserts that nothing is left in a folder for temporary files.
func empty(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("%s is left behind", e.Name())
	}
}

// watched is a writer that calls seen once a text was written.
type watched struct {
	text string
	seen func()

	mu  sync.Mutex
	all strings.Builder
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(b)
	if strings.Contains(w.all.String(), w.text) {
		w.seen()
	}
	return len(b), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}
