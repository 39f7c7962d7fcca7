package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// guardScript becomes the binary, and leaves a process behind that ends it when the test
// binary is gone: the pipe, which the test binary alone holds open for writing, ends then.
const guardScript = `#!/bin/sh
dir='%s'
(
	read -r _ <"$dir/alive"
	kill -KILL "$$"
	while kill -0 "$$"; do sleep 0.1; done
	rm -rf "$dir"
) >/dev/null 2>&1 &
exec '%s' "$@"
`

// guard answers where the guarded forms of the binaries in assets are.
func guard(dir, assets string) (func(name string) string, error) {
	alive := filepath.Join(dir, "alive")
	if err := syscall.Mkfifo(alive, 0o600); err != nil {
		return nil, fmt.Errorf("make pipe %q: %w", alive, err)
	}
	// Open for reading too, so that opening does not wait for a reader. Never closed: the
	// end of this process does that.
	if _, err := syscall.Open(alive, syscall.O_RDWR|syscall.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("open pipe %q: %w", alive, err)
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		script := fmt.Sprintf(guardScript, dir, filepath.Join(assets, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
			return nil, err
		}
	}
	return func(name string) string { return filepath.Join(dir, name) }, nil
}
