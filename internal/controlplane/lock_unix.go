//go:build unix

package controlplane

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock locks f and returns true, or returns false if it is locked already. The lock ends with the
// last process that holds f open, so a crash cannot leave it behind.
func TryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
