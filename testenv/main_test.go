package testenv

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
