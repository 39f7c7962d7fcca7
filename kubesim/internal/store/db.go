// Package store keeps the objects of a simulated API server in memory. It stands where
// etcd stands under the real one: the server's registries run on it unchanged.
//
// A [DB] travels in the context of each request, so one set of registries serves any number
// of clusters, and a fresh cluster costs nothing.
package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/storage"
)

// DB is one cluster's data: what etcd would hold, with its history. The zero value is not
// usable; [New] makes one.
type DB struct {
	mu       sync.Mutex
	rev      int64
	serial   int64 // of objects made, for names and UIDs that are the same in each run
	entries  map[string]entry
	nextEnd  time.Time // not after the first end of an entry; zero if none has one
	history  []Change
	watchers []*watcher
	memos    map[*memo]any
	stale    map[*memo]any // what memos were before a change
}

// entry is what is stored under one key. Its bytes are never changed in place.
type entry struct {
	data []byte
	rev  int64
	ends time.Time // zero: never
	*shared
}

// Change is one revision: what one key held before and holds now.
type Change struct {
	Rev     int64
	Key     string
	Before  []byte // nil: the key is new
	After   []byte // nil: the key is gone
	PrevRev int64  // of Before
	At      time.Time

	before, after entry
}

// First is the revision at which a cluster begins. What it has was there from the start.
const First int64 = 1

// New returns an empty cluster.
func New() *DB { return Begin(nil).Open() }

// Begin returns a cluster that has had some keys since before its history begins.
func Begin(rows []Stored) *Snapshot {
	s := &Snapshot{rev: First, entries: map[string]entry{}}
	for _, r := range rows {
		s.entries[r.Key] = entry{data: r.Data, rev: First, shared: &shared{}}
	}
	return s
}

// Snapshot is a cluster at one moment. It is immutable and cheap: bytes are shared.
type Snapshot struct {
	rev, serial int64
	entries     map[string]entry
	nextEnd     time.Time
	history     []Change
	memos       map[*memo]any
}

// Snapshot returns what is stored now.
func (d *DB) Snapshot() *Snapshot {
	d.lock()
	defer d.mu.Unlock()
	return &Snapshot{
		rev: d.rev, serial: d.serial, entries: maps.Clone(d.entries), nextEnd: d.nextEnd,
		history: slices.Clip(d.history), memos: maps.Clone(d.memos),
	}
}

// Open returns a new cluster that begins as s.
func (s *Snapshot) Open() *DB {
	return &DB{
		rev: s.rev, serial: s.serial, entries: maps.Clone(s.entries), nextEnd: s.nextEnd,
		history: s.history, memos: maps.Clone(s.memos),
	}
}

type contextKey struct{}

// With returns a context whose requests go to d.
func With(ctx context.Context, d *DB) context.Context { return context.WithValue(ctx, contextKey{}, d) }

// From returns the cluster that a request goes to. It panics without one: a request that
// did not come through the simulated server has lost its way.
func From(ctx context.Context) *DB {
	d, ok := Of(ctx)
	if !ok {
		panic("kubesim: a request without a cluster reached the storage")
	}
	return d
}

// Of returns the cluster that a request goes to, if it has one.
func Of(ctx context.Context) (*DB, bool) {
	d, ok := ctx.Value(contextKey{}).(*DB)
	return d, ok
}

// Serial returns 1, 2, 3 and so on: what makes names and UIDs differ within a cluster and
// agree between equal runs.
func (d *DB) Serial() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serial++
	return d.serial
}

// Revision returns the number of the last change.
func (d *DB) Revision() int64 {
	d.lock()
	defer d.mu.Unlock()
	return d.rev
}

// History returns the changes since the cluster began, the oldest first. It must not be
// modified.
func (d *DB) History() []Change {
	d.lock()
	defer d.mu.Unlock()
	return slices.Clip(d.history)
}

// Since returns the changes after revision rev.
func (d *DB) Since(rev int64) []Change {
	all := d.History()
	return all[after(all, rev):]
}

// after returns the place of the first change after revision rev.
func after(all []Change, rev int64) int {
	i, _ := slices.BinarySearchFunc(all, rev+1, func(c Change, rev int64) int { return cmp.Compare(c.Rev, rev) })
	return i
}

// lock locks d and removes what has expired meanwhile.
func (d *DB) lock() {
	d.mu.Lock()
	if d.nextEnd.IsZero() || time.Now().Before(d.nextEnd) {
		return
	}
	now := time.Now()
	d.nextEnd = time.Time{}
	for _, key := range slices.Sorted(maps.Keys(d.entries)) {
		switch e := d.entries[key]; {
		case e.ends.IsZero():
		case now.Before(e.ends):
			d.expect(e.ends)
		default:
			d.put(key, entry{})
		}
	}
}

// expect makes sure that d looks for expired entries at a time.
func (d *DB) expect(end time.Time) {
	if !end.IsZero() && (d.nextEnd.IsZero() || end.Before(d.nextEnd)) {
		d.nextEnd = end
	}
}

// put stores an entry under key, or removes the key if it has no data, and tells watchers.
// The caller holds the lock.
func (d *DB) put(key string, e entry) entry {
	before := d.entries[key]
	d.rev++
	d.forget(key)
	e.rev, e.shared = d.rev, &shared{}
	if e.data == nil {
		delete(d.entries, key)
	} else {
		d.entries[key] = e
		d.expect(e.ends)
	}
	c := Change{
		Rev: d.rev, Key: key, Before: before.data, After: e.data, PrevRev: before.rev, At: time.Now(),
		before: before, after: e,
	}
	d.history = append(d.history, c)
	for _, w := range d.watchers {
		if w.covers(key) {
			w.receive(c)
		}
	}
	return e
}

// get returns what is stored under key and the revision that shows it.
func (d *DB) get(key string) (e entry, rev int64, found bool) {
	d.lock()
	defer d.mu.Unlock()
	e, found = d.entries[key]
	return e, d.rev, found
}

// swap stores data under key if the key's revision still is expected; 0 expects no such key,
// and data nil removes it.
func (d *DB) swap(key string, expected int64, data []byte, ends time.Time) (entry, bool) {
	d.lock()
	defer d.mu.Unlock()
	if d.entries[key].rev != expected {
		return entry{}, false
	}
	return d.put(key, entry{data: data, ends: ends}), true
}

// page is a part of a list.
type page struct {
	rows []row
	rev  int64 // that the list shows
}

type row struct {
	key string
	entry
}

// list returns the entries under prefix, sorted by key, as they were at revision at, or are
// now if it is 0. exact asks for one key.
func (d *DB) list(prefix string, exact bool, at int64) (page, error) {
	d.lock()
	defer d.mu.Unlock()
	entries := d.entries
	if at == 0 {
		at = d.rev
	}
	switch {
	case at > d.rev:
		return page{}, storage.NewTooLargeResourceVersionError(uint64(at), uint64(d.rev), 0)
	case at < d.rev:
		entries = d.asOf(at)
	}
	p := page{rev: at}
	for key, e := range entries {
		if key == prefix || !exact && strings.HasPrefix(key, prefix) {
			p.rows = append(p.rows, row{key, e})
		}
	}
	slices.SortFunc(p.rows, func(a, b row) int { return strings.Compare(a.key, b.key) })
	return p, nil
}

// asOf returns the entries as they were at an earlier revision.
func (d *DB) asOf(rev int64) map[string]entry {
	entries := maps.Clone(d.entries)
	for _, c := range slices.Backward(d.history) {
		if c.Rev <= rev {
			break
		}
		if c.Before == nil {
			delete(entries, c.Key)
			continue
		}
		entries[c.Key] = c.before
	}
	return entries
}
