package trace

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

type multi []Sink

// Multi returns a sink that feeds all sinks that are not nil, in order. If one panics, the others
// still get the record. If all sinks are nil, Multi returns nil.
func Multi(sinks ...Sink) Sink {
	var m multi
	for _, s := range sinks {
		if s != nil {
			m = append(m, s)
		}
	}
	switch len(m) {
	case 0:
		return nil
	case 1:
		return m[0]
	}
	return m
}

func (m multi) Record(r Record) {
	var failed any
	for _, s := range m {
		if p := try(s, r); p != nil && failed == nil {
			failed = p
		}
	}
	if failed != nil {
		panic(failed)
	}
}

// try returns the value with which s panicked, or nil.
func try(s Sink, r Record) (panicked any) {
	defer func() { panicked = recover() }()
	s.Record(r)
	return nil
}

// Buffer decouples the loop from a sink that may block. When the buffer is full, records are
// dropped and counted. Call Close to flush it.
type Buffer struct {
	next    Sink
	records chan Record
	dropped atomic.Uint64
	closing chan struct{}
	closed  chan struct{}
	once    sync.Once
}

// NewBuffer returns a buffer for the given number of records and starts a goroutine that feeds
// next until [Buffer.Close] is called. If records is zero or negative, 4096 is used.
func NewBuffer(next Sink, records int) *Buffer {
	if records <= 0 {
		records = 4096
	}
	b := &Buffer{
		next: next, records: make(chan Record, records),
		closing: make(chan struct{}), closed: make(chan struct{}),
	}
	go b.run()
	return b
}

// Record stores r or, if the buffer is full, drops it. It never blocks.
func (b *Buffer) Record(r Record) {
	select {
	case b.records <- r:
	default:
		b.dropped.Add(1)
	}
}

func (b *Buffer) run() {
	defer close(b.closed)
	for {
		select {
		case r := <-b.records:
			b.deliver(r)
		case <-b.closing:
			b.drain()
			return
		}
	}
}

func (b *Buffer) drain() {
	for {
		select {
		case r := <-b.records:
			b.deliver(r)
		default:
			return
		}
	}
}

func (b *Buffer) deliver(r Record) {
	if try(b.next, r) != nil {
		b.dropped.Add(1)
	}
}

// Dropped returns the number of records that were lost because the buffer was full or the sink
// panicked.
func (b *Buffer) Dropped() uint64 { return b.dropped.Load() }

// Close flushes the buffer. It returns when all records have been passed on or ctx is done.
// Records that arrive afterwards are lost. Close may be called more than once.
func (b *Buffer) Close(ctx context.Context) error {
	b.once.Do(func() { close(b.closing) })
	select {
	case <-b.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("write the last trace records: %w", context.Cause(ctx))
	}
}
