package store

import (
	"maps"
	"slices"
)

// Row is what is stored under one key.
type Row struct {
	Key  string
	Data []byte // must not be modified
	Rev  int64
}

// Rows returns all that is stored, sorted by key.
func (d *DB) Rows() []Row {
	d.lock()
	defer d.mu.Unlock()
	rows := make([]Row, 0, len(d.entries))
	for _, key := range slices.Sorted(maps.Keys(d.entries)) {
		rows = append(rows, Row{key, d.entries[key].data, d.entries[key].rev})
	}
	return rows
}

// Revision returns the revision that the snapshot shows.
func (s *Snapshot) Revision() int64 { return s.rev }
