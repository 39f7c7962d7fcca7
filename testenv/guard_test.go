package testenv

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestGuardEndsWhatATestLeaves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(cmd.Environ(), envGuarded+"="+dir)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(line)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the guarded process did not start: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	poll(t, "process and folder to go", func(_ context.Context) (bool, error) {
		_, err := os.Stat(dir)
		return errors.Is(err, fs.ErrNotExist) && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH), nil
	})
}
