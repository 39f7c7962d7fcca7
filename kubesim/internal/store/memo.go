package store

import (
	"slices"
	"strings"
	"time"
)

// Stored is one key with what it holds.
type Stored struct {
	Key  string
	Data []byte
	Rev  int64
}

// A Memo is something computed from what is stored under some prefixes. Each world keeps its
// result until one of those keys changes; worlds opened from a snapshot begin with the
// snapshot's, so results must never be modified. Create one with [NewMemo] and keep it.
type Memo[T any] struct{ m *memo }

type memo struct {
	prefixes []string
	compute  func([]Stored) any
}

// NewMemo returns a memo of all keys that begin with one of the prefixes: "/roles/". compute
// gets them sorted.
func NewMemo[T any](compute func([]Stored) T, prefixes ...string) *Memo[T] {
	return &Memo[T]{&memo{prefixes, func(rows []Stored) any { return compute(rows) }}}
}

// Of returns the result for a world.
func (m *Memo[T]) Of(d *DB) T {
	d.lock()
	defer d.mu.Unlock()
	if v, ok := d.memos[m.m]; ok {
		return v.(T)
	}
	var rows []Stored
	for key, e := range d.entries {
		if m.m.covers(key) {
			rows = append(rows, Stored{key, e.data, e.rev})
		}
	}
	slices.SortFunc(rows, func(a, b Stored) int { return strings.Compare(a.Key, b.Key) })
	v := m.m.compute(rows)
	if d.memos == nil {
		d.memos = map[*memo]any{}
	}
	d.memos[m.m] = v
	return v.(T)
}

func (m *memo) covers(key string) bool {
	return slices.ContainsFunc(m.prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// forget drops what a changed key was part of. The caller holds the lock.
func (d *DB) forget(key string) {
	for m := range d.memos {
		if m.covers(key) {
			delete(d.memos, m)
		}
	}
}

// Load stores data as it is, past any API: for what a world begins with.
func (d *DB) Load(key string, data []byte) {
	d.lock()
	defer d.mu.Unlock()
	d.put(key, entry{data: data, ends: time.Time{}})
}

// Stored returns all that is stored, sorted by key, and the revision that it shows.
func (d *DB) Stored() ([]Stored, int64) {
	d.lock()
	defer d.mu.Unlock()
	rows := make([]Stored, 0, len(d.entries))
	for key, e := range d.entries {
		rows = append(rows, Stored{key, e.data, e.rev})
	}
	slices.SortFunc(rows, func(a, b Stored) int { return strings.Compare(a.Key, b.Key) })
	return rows, d.rev
}
