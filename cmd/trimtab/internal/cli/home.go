package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

// home is the folder of the user's cluster; there is at most one.
//
// Invariant: the file "lock" is locked while the cluster runs, by the control plane's process,
// and before that by the command that starts it. A record of a running cluster is therefore
// valid if and only if the lock is held, even after a crash.
type home struct{ dir string }

// record describes the cluster.
type record struct {
	controlplane.Cluster
	// Began is when the cluster was requested.
	Began time.Time `json:"began"`
	// Starting is true until the cluster is ready; until then PID is that of the command that
	// starts it.
	Starting bool `json:"starting,omitempty"`
	// Kept is true if the data stays when the cluster stops.
	Kept bool `json:"kept,omitempty"`
}

func openHome() (home, error) {
	dir, err := controlplane.CacheFolder("cluster")
	if err != nil {
		return home{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return home{}, fmt.Errorf("keep track of the cluster: %w; set XDG_CACHE_HOME to a writable folder", err)
	}
	return home{dir: dir}, nil
}

func (h home) kubeconfig() string { return filepath.Join(h.dir, "kubeconfig") }
func (h home) record() string     { return filepath.Join(h.dir, "cluster.json") }
func (h home) complaints() string { return filepath.Join(h.dir, "complaints.log") }

// lock takes the lock and returns the file that holds it, or nil if a cluster is running.
func (h home) lock() (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(h.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep track of the cluster: %w", err)
	}
	got, err := controlplane.TryLock(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep track of the cluster: %w", err), f.Close())
	}
	if !got {
		return nil, f.Close()
	}
	return f, nil
}

// running returns the record of the running cluster, or nil if there is none.
func (h home) running() (*record, error) {
	f, err := h.lock()
	if err != nil {
		return nil, err
	}
	if f != nil {
		return nil, f.Close()
	}
	r, err := h.read()
	if errors.Is(err, fs.ErrNotExist) {
		return &record{Starting: true}, nil // the lock is taken before the record is written
	}
	if err != nil {
		return nil, fmt.Errorf("%w; stop the process named devcluster and remove the file", err)
	}
	return &r, nil
}

// tidy removes what is left of a cluster that has died.
func (h home) tidy() error {
	lock, err := h.lock()
	if lock == nil {
		return err
	}
	defer lock.Close()
	return h.clear()
}

func (h home) read() (record, error) {
	var r record
	text, err := os.ReadFile(h.record())
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return record{}, fmt.Errorf("read the record of the cluster from %q: %w", h.record(), err)
	}
	return r, nil
}

// write writes the record atomically, so that nobody reads half of it.
func (h home) write(r record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	next := h.record() + ".next"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return fmt.Errorf("keep track of the cluster: %w", err)
	}
	if err := os.Rename(next, h.record()); err != nil {
		return fmt.Errorf("keep track of the cluster: %w", err)
	}
	return nil
}

// clear removes the record of the cluster and what is left of one that was killed. The caller
// holds the lock.
func (h home) clear() error {
	r, _ := h.read() // an unreadable record names nothing that could be removed
	if r.Data != "" && !r.Kept {
		if err := os.RemoveAll(r.Data); err != nil {
			return fmt.Errorf("remove the data of a stopped cluster: %w", err)
		}
	}
	for _, path := range []string{h.record(), h.kubeconfig(), h.complaints()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the record of the cluster: %w", err)
		}
	}
	return nil
}
