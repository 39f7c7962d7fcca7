package folder

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// errHeld says that another process holds the lock.
var errHeld = errors.New("held by another process")

// lock takes the lock file at path, making it first when it is not there. The
// lock lasts until the file is closed or the process ends.
func lock(path string) (*os.File, error) {
	return flock(path, os.O_RDWR|os.O_CREATE)
}

// lockExisting is lock for a file that must be there.
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
