package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

// TestDemo plays the demo as its users do and reads what it says of itself.
func TestDemo(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
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
		t.Errorf("stream payments, killed in mid-create: %+v, want one create, one delete, and writes counted", got)
	}
	for _, line := range []string{"Creating → Succeeded", "spec.maxMsgs is 7, wanted 1000", "killed:"} {
		if !strings.Contains(errOut.String(), line) {
			t.Errorf("nobody was shown %q", line)
		}
	}
	empty(t, folder)
}

// TestDemoInterrupted stops the demo while the operator runs.
func TestDemoInterrupted(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
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

func TestDemoOutputFormat(t *testing.T) {
	var errOut bytes.Buffer
	code := Main(t.Context(), []string{"demo", "-o", "xml"}, Streams{Out: io.Discard, Err: &errOut})
	if want := "trimtab: -o xml: use json, or leave it out\n"; code != 1 || errOut.String() != want {
		t.Errorf("exit code %d, %q; want 1, %q", code, &errOut, want)
	}
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
