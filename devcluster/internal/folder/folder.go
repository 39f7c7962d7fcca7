// Package folder manages the data folder of a control plane.
//
// A folder has one owner at a time: the process that holds the lock on the file
// "lock" in it. The kernel releases the lock when the process ends, however it
// ends, so a free lock means that the owner is gone.
package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	lockFile = "lock"
	// prefix is the prefix of temporary folders, by which sweep finds them.
	prefix = "trimtab-devcluster-"
	// newborn is the prefix of temporary folders that are not locked yet. sweep
	// ignores these, so it never removes the folder of a starting process.
	newborn = ".new-" + prefix
)

// Folder is a data folder that this process owns until Close.
type Folder struct {
	path      string
	temporary bool
	lock      *os.File
}

// Open opens the named folder and creates it if it does not exist.
func Open(path string) (*Folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data folder %q: %w", path, err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, fmt.Errorf("create data folder %q: %w; use a writable folder", abs, reason(err))
	}
	f := &Folder{path: abs}
	f.lock, err = lock(f.Join(lockFile))
	if errors.Is(err, errHeld) {
		return nil, fmt.Errorf("data folder %q is in use by %s; stop that process or choose another folder", abs, holder(f.Join(lockFile)))
	}
	if err != nil {
		return nil, fmt.Errorf("lock data folder %q: %w; use a writable folder", abs, reason(err))
	}
	return f, f.sign()
}

// Temp creates a folder in parent that Close removes. It first removes temporary
// folders whose owners were killed.
func Temp(parent string) (*Folder, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, fmt.Errorf("folder for temporary files: %w", err)
	}
	sweep(parent)
	f, err := temp(parent)
	if err != nil {
		return nil, fmt.Errorf("create a temporary data folder in %q: %w; set TMPDIR to a writable folder", parent, reason(err))
	}
	return f, f.sign()
}

// temp locks the folder under its newborn name and then renames it to a name that
// sweep looks for. The lock belongs to the open file, so the rename keeps it.
func temp(parent string) (*Folder, error) {
	made, err := os.MkdirTemp(parent, newborn)
	if err != nil {
		return nil, err
	}
	f := &Folder{temporary: true}
	if f.lock, err = lock(filepath.Join(made, lockFile)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(made))
	}
	f.path = filepath.Join(parent, prefix+strings.TrimPrefix(filepath.Base(made), newborn))
	if err := os.Rename(made, f.path); err != nil {
		return nil, errors.Join(err, f.lock.Close(), os.RemoveAll(made))
	}
	return f, nil
}

// sweep removes the temporary folders in parent whose owners are gone. It ignores
// errors, because folders that it cannot access belong to other users.
func sweep(parent string) {
	folders, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return
	}
	for _, path := range folders {
		held, err := lockExisting(filepath.Join(path, lockFile))
		if err != nil {
			continue
		}
		_ = os.RemoveAll(path)
		_ = held.Close()
	}
}

// Path returns the absolute path of the folder.
func (f *Folder) Path() string { return f.path }

// Temporary reports whether Close removes the folder.
func (f *Folder) Temporary() bool { return f.temporary }

// Join returns the path of a file in the folder.
func (f *Folder) Join(elem ...string) string {
	return filepath.Join(append([]string{f.path}, elem...)...)
}

// Close unlocks the folder and removes it if it is temporary.
func (f *Folder) Close() error {
	if !f.temporary {
		return f.lock.Close()
	}
	return errors.Join(os.RemoveAll(f.path), f.lock.Close())
}

// Write replaces a file of the folder atomically: a reader sees either the old or
// the new content, even after a crash.
func (f *Folder) Write(name string, content []byte) error {
	return WriteFile(f.Join(name), content)
}

// WriteFile replaces a file atomically. Only its owner can read it.
func WriteFile(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // it has been renamed if there was no error
	_, err = tmp.Write(content)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// sign writes the owner into the lock file, for error messages of other processes.
func (f *Folder) sign() error {
	err := f.lock.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintf(f.lock, "process %d\n", os.Getpid())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write to data folder %q: %w", f.path, reason(err)), f.Close())
	}
	return nil
}

func holder(lockPath string) string {
	said, err := os.ReadFile(lockPath)
	if name := strings.TrimSpace(string(said)); err == nil && name != "" {
		return name
	}
	return "another process"
}

// reason removes the operation and the path from an error, because the message
// around it contains them.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
