package trace

import (
	"sync"
	"time"
)

// RingOptions bound a [Ring].
type RingOptions struct {
	// Records is how many are kept at most. Zero means 20,000.
	Records int
	// Bytes is roughly how much memory they may take. Zero means 8 MiB.
	Bytes int
}

// Ring is a flight recorder: it keeps the last records of a process in memory and drops
// the oldest when one more would exceed its bounds. It is safe for concurrent use and
// never blocks for longer than a copy takes.
type Ring struct {
	maxRecords, maxBytes int

	mu      sync.Mutex
	records []Record // a queue: records[first:] are kept
	first   int
	bytes   int
	dropped uint64
}

// NewRing returns an empty recorder.
func NewRing(o RingOptions) *Ring {
	if o.Records <= 0 {
		o.Records = 20_000
	}
	if o.Bytes <= 0 {
		o.Bytes = 8 << 20
	}
	return &Ring{maxRecords: o.Records, maxBytes: o.Bytes}
}

// Record keeps r. One that alone exceeds the bound on memory is dropped.
func (r *Ring) Record(rec Record) {
	size := sizeOf(rec)
	r.mu.Lock()
	defer r.mu.Unlock()
	if size > r.maxBytes {
		r.dropped++
		return
	}
	r.records = append(r.records, rec)
	r.bytes += size
	for len(r.records)-r.first > r.maxRecords || r.bytes > r.maxBytes {
		r.dropOldest()
	}
}

// dropOldest moves the queue to the front of its array once half of that is unused, so
// that each record is moved once on average.
func (r *Ring) dropOldest() {
	r.bytes -= sizeOf(r.records[r.first])
	r.records[r.first] = Record{}
	r.first++
	r.dropped++
	if r.first*2 < len(r.records) {
		return
	}
	n := copy(r.records, r.records[r.first:])
	clear(r.records[n:])
	r.records, r.first = r.records[:n], 0
}

// Query selects records. Fields that are zero select all.
type Query struct {
	Controller string
	// Kind, Namespace, Name and UID are those of the object.
	Kind, Namespace, Name, UID string
	// Since leaves out what happened before.
	Since time.Time
	// Last is how many records are returned at most, the newest.
	Last int
}

// Select returns the records that q matches, oldest first.
func (r *Ring) Select(q Query) []Record {
	r.mu.Lock()
	kept := append([]Record(nil), r.records[r.first:]...)
	r.mu.Unlock()
	found := kept[:0]
	for _, rec := range kept {
		if q.matches(rec) {
			found = append(found, rec)
		}
	}
	if q.Last > 0 && len(found) > q.Last {
		found = found[len(found)-q.Last:]
	}
	return found
}

func (q Query) matches(r Record) bool {
	return is(q.Controller, r.Controller) && is(q.Kind, r.Object.Kind) &&
		is(q.Namespace, r.Object.Namespace) && is(q.Name, r.Object.Name) &&
		is(q.UID, r.Object.UID) && !r.Time.Before(q.Since)
}

func is(want, have string) bool { return want == "" || want == have }

// Dropped is how many records had to go.
func (r *Ring) Dropped() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// sizeOf estimates what a record occupies: its texts, and about as much as the largest of
// the event structs plus allocator overhead.
func sizeOf(r Record) int {
	const fixed = 320
	size := fixed + len(r.Controller) + len(r.Object.Kind) + len(r.Object.Namespace) + len(r.Object.Name) + len(r.Object.UID)
	eachText(r.Event, func(s string) string {
		size += len(s) + 16
		return s
	})
	return size
}
