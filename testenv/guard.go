package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// guardScript starts a process that waits for the end of a pipe, and then becomes the binary. Only
// the test binary holds the writing end of the pipe, so when the test binary is gone, the process ends
// the binary. The pipe is inherited instead of opened by name, because opening a fifo without a writer
// would block.
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

// guard returns a folder with guarded forms of the binaries in assets.
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

// lifeline returns a descriptor that every child inherits and that reaches its end when this process
// ends: the reading end of a pipe whose writing end is never closed.
func lifeline() (int, error) {
	var ends [2]int
	syscall.ForkLock.RLock() // no child must inherit the writing end
	defer syscall.ForkLock.RUnlock()
	if err := syscall.Pipe(ends[:]); err != nil {
		return 0, fmt.Errorf("create a pipe: %w", err)
	}
	syscall.CloseOnExec(ends[1])
	return ends[0], nil
}
