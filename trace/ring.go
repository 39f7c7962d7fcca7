package trace

import (
	"slices"
	"sync"
	"time"
)

// RingOptions limit the size of a [Ring].
type RingOptions struct {
	// Records is the maximum number of records. Zero means 20,000.
	Records int
	// Bytes is the maximum size of the records in memory, where a record takes about 200 bytes.
	// Zero means 2 MiB.
	Bytes int
}

// Ring is a flight recorder: it keeps the most recent records of a process in memory and drops
// the oldest ones when a new one would exceed the limits. Its memory grows as it fills. It is safe for
// concurrent use and never blocks for long.
type Ring struct {
	maxRecords, maxBytes int

	mu sync.Mutex
	// blocks hold encoded records, oldest first, of which blocks[0][first:] are kept. What is in a block
	// is never changed, so that it can be read without the lock.
	blocks [][]byte
	first  int
	// kept records have so many bytes.
	kept, bytes int
	dropped     uint64
}

// blockSize is the size of a block, unless one record needs more.
const blockSize = 64 << 10

// NewRing returns an empty Ring.
func NewRing(o RingOptions) *Ring {
	if o.Records <= 0 {
		o.Records = 20_000
	}
	if o.Bytes <= 0 {
		o.Bytes = 2 << 20
	}
	return &Ring{maxRecords: o.Records, maxBytes: o.Bytes}
}

// Record keeps rec, unless it alone exceeds the limit in bytes.
func (r *Ring) Record(rec Record) {
	var room [512]byte // enough for most
	encoded := appendRecord(room[:0], rec)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(encoded) > r.maxBytes {
		r.dropped++
		return
	}
	for r.kept >= r.maxRecords || r.bytes+len(encoded) > r.maxBytes {
		r.dropOldest()
	}
	last := len(r.blocks) - 1
	if last < 0 || len(r.blocks[last])+len(encoded) > cap(r.blocks[last]) {
		r.blocks = append(r.blocks, make([]byte, 0, max(min(blockSize, r.maxBytes), len(encoded))))
		last++
	}
	r.blocks[last] = append(r.blocks[last], encoded...)
	r.kept++
	r.bytes += len(encoded)
}

// dropOldest removes the oldest record, and its block if that was the last one in it.
func (r *Ring) dropOldest() {
	size := sizeOf(r.blocks[0][r.first:])
	r.first += size
	r.bytes -= size
	r.kept--
	r.dropped++
	if r.first == len(r.blocks[0]) {
		r.blocks = slices.Delete(r.blocks, 0, 1)
		r.first = 0
	}
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
	blocks, first := slices.Clone(r.blocks), r.first
	r.mu.Unlock()
	var found []Record
	for _, block := range blocks {
		for block = block[first:]; len(block) > 0; block = block[sizeOf(block):] {
			if rec := decodeRecord(block); q.matches(rec) {
				found = append(found, rec)
			}
		}
		first = 0
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
