package controlplane

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// TryLock locks f and returns true, or returns false if it is locked already. The lock ends with the
// process that holds f open, so a crash cannot leave it behind.
func TryLock(f *os.File) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
