package store

import (
	"slices"
	"strings"
)

// Stored is one key with what it holds.
type Stored struct {
	Key  string
	Data []byte // must not be modified
	Rev  int64  // of its last change
}

// Rows returns all that is stored, sorted by key.
func (d *DB) Rows() []Stored {
	d.lock()
	defer d.mu.Unlock()
	return d.rows(func(string) bool { return true })
}

// Under returns what is stored under the keys with a prefix, sorted by key, and the cluster's revision.
func (d *DB) Under(prefix string) (rows []Stored, rev int64) {
	d.lock()
	defer d.mu.Unlock()
	return d.rows(func(key string) bool { return strings.HasPrefix(key, prefix) }), d.rev
}

// Row returns what is stored under one key.
func (d *DB) Row(key string) (Stored, bool) {
	e, _, found := d.get(key)
	return Stored{key, e.data, e.rev}, found
}

// rows returns the rows with the wanted keys, sorted. The caller holds the lock.
func (d *DB) rows(wanted func(key string) bool) []Stored {
	var rows []Stored
	for key, e := range d.entries {
		if wanted(key) {
			rows = append(rows, Stored{key, e.data, e.rev})
		}
	}
	slices.SortFunc(rows, func(a, b Stored) int { return strings.Compare(a.Key, b.Key) })
	return rows
}

// Load stores data as it is, past any API: for what a cluster begins with.
func (d *DB) Load(key string, data []byte) {
	d.lock()
	defer d.mu.Unlock()
	d.put(key, entry{data: data})
}

// Revision returns the revision that the snapshot shows.
func (s *Snapshot) Revision() int64 { return s.rev }
