package child

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/internal/poll"
)

// envParent makes this test binary start a process and wait for it.
const envParent = "TRIMTAB_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(envParent) == "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("sh", "-c", "echo started; exec sleep 1000") //nolint:noctx // it is to end with this process
	cmd.Stdout = os.Stdout
	ended := make(chan struct{})
	if err := Start(cmd, ended); err != nil {
		panic(err)
	}
	_ = Wait(cmd)
	close(ended)
}

// TestKilled: a process ends with its parent, even if that is killed. Its end closes its output.
func TestKilled(t *testing.T) {
	t.Parallel()
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), envParent+"=1")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	parent.Stdout = w
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(r)
	if line, err := out.ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestLeftBehind: a process that another one has started and left behind, and that keeps its output open, does not keep anybody
// waiting, and ends.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	alive, held, err := os.Pipe() // its end is that of all that have it
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 1000 & echo started")
	cmd.Stdout, cmd.ExtraFiles = &out, []*os.File{held}
	ended, result := make(chan struct{}), make(chan error, 1)
	if err := Start(cmd, ended); err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	go func() {
		result <- Wait(cmd)
		close(ended)
	}()
	select {
	case err := <-result:
		if err != nil || out.String() != "started\n" {
			t.Errorf("it ended with %v and wrote %q", err, out.String())
		}
	case <-time.After(poll.Patience):
		t.Fatal("the end is not noticed while somebody else keeps the output open")
	}
	if err := alive.SetReadDeadline(time.Now().Add(poll.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(alive); err != nil {
		t.Errorf("what it has started goes on: %v", err)
	}
}
