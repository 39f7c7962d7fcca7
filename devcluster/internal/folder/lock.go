package folder

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// errHeld is returned if another process holds the lock.
var errHeld = errors.New("held by another process")

// lock locks the file at path and creates it if it does not exist. The lock lasts
// until the file is closed or the process ends.
func lock(path string) (*os.File, error) {
	return flock(path, os.O_RDWR|os.O_CREATE)
}

// lockExisting is like lock, but the file must exist.
func lockExisting(path string) (*os.File, error) {
	return flock(path, os.O_RDWR)
}

func flock(path string, mode int) (*os.File, error) {
	f, err := os.OpenFile(path, mode, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errHeld
	}
	return nil, errors.Join(fmt.Errorf("lock %q: %w", path, err), f.Close())
}
