package child

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
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
	_ = cmd.Wait()
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
