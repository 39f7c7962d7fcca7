// Package folder owns the folder that a control plane keeps its data in.
//
// A folder has one owner at a time: the process that holds the lock on the file
// "lock" inside it. The kernel drops that lock when the process ends, however
// it ends, so a lock that is free means an owner that is gone.
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
	// prefix marks temporary folders, for people and for sweep.
	prefix = "trimtab-devcluster-"
	// newborn marks a temporary folder whose lock is not taken yet. sweep does
	// not look at these, so it never takes a folder from a starting process.
	newborn = ".new-" + prefix
)

// Folder is a data folder that this process owns until Close.
type Folder struct {
	path      string
	temporary bool
	lock      *os.File
}

// Open takes the named folder, and makes it when it does not exist.
func Open(path string) (*Folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data folder %q: %w", path, err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder %q: %w; name a folder that you may write to", abs, reason(err))
	}
	f := &Folder{path: abs}
	f.lock, err = lock(f.Join(lockFile))
	if errors.Is(err, errHeld) {
		return nil, fmt.Errorf("data folder %q is in use by %s; stop that one or name another folder", abs, holder(f.Join(lockFile)))
	}
	if err != nil {
		return nil, fmt.Errorf("lock data folder %q: %w; name a folder that you may write to", abs, reason(err))
	}
	return f, f.sign()
}

// Temp takes a new folder in parent that Close removes. It first removes the
// temporary folders there whose owners were killed and could not do it
// themselves.
func Temp(parent string) (*Folder, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, fmt.Errorf("folder for temporary files: %w", err)
	}
	sweep(parent)
	f, err := temp(parent)
	if err != nil {
		return nil, fmt.Errorf("make a temporary data folder in %q: %w; set TMPDIR to a folder that you may write to", parent, reason(err))
	}
	return f, f.sign()
}

// temp locks the folder under its newborn name and only then gives it the name
// that sweep looks for. The lock belongs to the open file and moves along.
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

// sweep removes the temporary folders in parent whose owner is gone. Folders
// that it may not touch are other people's, so it says nothing about them.
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

// Path is where the folder is: absolute.
func (f *Folder) Path() string { return f.path }

// Temporary tells whether Close removes the folder.
func (f *Folder) Temporary() bool { return f.temporary }

// Join is the path of a file in the folder.
func (f *Folder) Join(elem ...string) string {
	return filepath.Join(append([]string{f.path}, elem...)...)
}

// Close gives the folder up and removes it when it is temporary.
func (f *Folder) Close() error {
	if !f.temporary {
		return f.lock.Close()
	}
	return errors.Join(os.RemoveAll(f.path), f.lock.Close())
}

// Write replaces a file of the folder in one step: a reader, or a process that
// starts after a crash, sees the old content or the new.
func (f *Folder) Write(name string, content []byte) error {
	return WriteFile(f.Join(name), content)
}

// WriteFile replaces a file in one step. Only its owner may read it.
func WriteFile(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // it is gone already when all went well
	_, err = tmp.Write(content)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// sign writes into the lock file who holds it, for the next one who asks.
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

// reason drops the operation and the path that the sentence around it names.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
