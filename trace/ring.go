package trace

import (
	"sync"
	"time"
)

// RingOptions limit the size of a [Ring].
type RingOptions struct {
	// Records is the maximum number of records. Zero means 20,000.
	Records int
	// Bytes is the approximate maximum size of the records in memory. Zero means 8 MiB.
	Bytes int
}

// Ring is a flight recorder: it keeps the most recent records of a process in memory and drops
// the oldest ones when a new one would exceed the limits. It is safe for concurrent use and blocks
// no longer than it takes to copy records.
type Ring struct {
	maxRecords, maxBytes int

	mu      sync.Mutex
	records []Record // a queue: records[first:] are kept
	first   int
	bytes   int
	dropped uint64
}

// NewRing returns an empty Ring.
func NewRing(o RingOptions) *Ring {
	if o.Records <= 0 {
		o.Records = 20_000
	}
	if o.Bytes <= 0 {
		o.Bytes = 8 << 20
	}
	return &Ring{maxRecords: o.Records, maxBytes: o.Bytes}
}

// Record keeps rec, unless it alone exceeds the limit in bytes.
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

// dropOldest removes the oldest record. It moves the queue to the front of its array once half of
// the array is unused, so that each record is moved once on average.
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

// Query selects records. A field with its zero value does not restrict the selection.
type Query struct {
	Controller string
	// Kind, Namespace, Name and UID are those of the object.
	Kind, Namespace, Name, UID string
	// Since excludes earlier records.
	Since time.Time
	// Last is the maximum number of records; the newest ones are returned.
	Last int
}

// Select returns the records that match q, oldest first.
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

// Dropped returns the number of records that were dropped.
func (r *Ring) Dropped() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// sizeOf estimates the size of a record in memory: its texts, plus a constant for the largest
// event struct and allocator overhead.
func sizeOf(r Record) int {
	const fixed = 320
	size := fixed + len(r.Controller) + len(r.Object.Kind) + len(r.Object.Namespace) + len(r.Object.Name) + len(r.Object.UID)
	texts, fields := textsOf(r.Event)
	for _, s := range texts {
		size += len(s)
	}
	for _, s := range fields {
		size += len(s) + 16
	}
	return size
}
