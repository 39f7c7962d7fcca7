package testenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// envGuarded makes this test binary start a guarded process in the folder that it names.
const envGuarded = "TRIMTAB_TEST_GUARDED"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envGuarded); dir != "" {
		if err := startGuarded(dir); err != nil {
			fmt.Println(err)
		}
		_, _ = io.Copy(io.Discard, os.Stdin) // until killed
		return
	}
	os.Exit(m.Run())
}

func startGuarded(dir string) error {
	assets := filepath.Dir(dir)
	if err := os.WriteFile(filepath.Join(assets, "etcd"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	guarded, err := guard(dir, assets)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), guarded("etcd"))
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = fmt.Println(cmd.Process.Pid)
	return err
}

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
