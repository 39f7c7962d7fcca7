package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// guardScript becomes the binary, and leaves a process behind that ends it when the test
// binary is gone: the pipe, which the test binary alone can write to, ends then. The pipe
// is inherited, not opened by a name: a fifo that has no writer any more is waited for.
const guardScript = `#!/bin/sh
dir='%s'
(
	read -r _ </dev/fd/%d
	kill -KILL "$$"
	while kill -0 "$$"; do sleep 0.1; done
	rm -rf "$dir"
) >/dev/null 2>&1 &
exec '%s' "$@"
`

// guard answers where the guarded forms of the binaries in assets are.
func guard(dir, assets string) (func(name string) string, error) {
	alive, err := lifeline()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		script := fmt.Sprintf(guardScript, dir, alive, filepath.Join(assets, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
			return nil, err
		}
	}
	return func(name string) string { return filepath.Join(dir, name) }, nil
}

// lifeline answers a descriptor that every child inherits and that ends with this process:
// the reading end of a pipe whose other end is never closed before.
func lifeline() (int, error) {
	var ends [2]int
	syscall.ForkLock.RLock() // no child may inherit the writing end
	defer syscall.ForkLock.RUnlock()
	if err := syscall.Pipe(ends[:]); err != nil {
		return 0, fmt.Errorf("make a pipe: %w", err)
	}
	syscall.CloseOnExec(ends[1])
	return ends[0], nil
}
