package trace

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

type multi []Sink

// Multi feeds every sink that is not nil, in order. A panic of one does not keep a record
// from the others. Without any it is nil, which drops.
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

// try returns what s panicked with.
func try(s Sink, r Record) (panicked any) {
	defer func() { panicked = recover() }()
	s.Record(r)
	return nil
}

// Buffer stands between the loop and a sink that may block. Records that find it full are
// dropped and counted. Close it to write out what it holds.
type Buffer struct {
	next    Sink
	records chan Record
	dropped atomic.Uint64
	closing chan struct{}
	closed  chan struct{}
	once    sync.Once
}

// NewBuffer starts a goroutine, which ends with [Buffer.Close], and feeds next from it.
// Zero or less records means 4096.
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

// Record takes r or drops it, at once.
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

// Dropped is how many records were lost: the buffer was full, or the sink panicked.
func (b *Buffer) Dropped() uint64 { return b.dropped.Load() }

// Close hands on what was recorded before it and returns when that is done or ctx is. What
// is recorded afterwards is lost. It may be called again.
func (b *Buffer) Close(ctx context.Context) error {
	b.once.Do(func() { close(b.closing) })
	select {
	case <-b.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("write out the last trace records: %w", context.Cause(ctx))
	}
}
