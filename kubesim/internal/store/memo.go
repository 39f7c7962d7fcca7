package store

import (
	"slices"
	"strings"
)

// A Memo is something computed from what is stored under some prefixes. Each cluster keeps its
// result until one of those keys changes; clusters opened from a snapshot begin with the
// snapshot's, so results must never be modified. Create one with [NewMemo] and keep it.
type Memo[T any] struct{ m *memo }

type memo struct {
	prefixes []string
	compute  func(before any, rows []Stored) any
}

// NewMemo returns a memo of all keys that begin with one of the prefixes: "/roles/". compute
// gets them sorted.
func NewMemo[T any](compute func([]Stored) T, prefixes ...string) *Memo[T] {
	return NewRenewed(func(_ T, rows []Stored) T { return compute(rows) }, prefixes...)
}

// NewRenewed is like [NewMemo] for what takes long to compute: compute also gets the result that the cluster had before
// the last change, the zero value if there was none.
func NewRenewed[T any](compute func(before T, rows []Stored) T, prefixes ...string) *Memo[T] {
	return &Memo[T]{&memo{prefixes, func(before any, rows []Stored) any {
		was, _ := before.(T)
		return compute(was, rows)
	}}}
}

// Of returns the result for a cluster.
func (m *Memo[T]) Of(d *DB) T {
	d.lock()
	defer d.mu.Unlock()
	if v, ok := d.memos[m.m]; ok {
		return v.(T)
	}
	v := m.m.compute(d.stale[m.m], d.rows(m.m.covers))
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
	for m, v := range d.memos {
		if m.covers(key) {
			delete(d.memos, m)
			if d.stale == nil {
				d.stale = map[*memo]any{}
			}
			d.stale[m] = v
		}
	}
}
