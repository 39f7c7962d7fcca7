package trace

import (
	"context"
	"time"
)

// Object names what a pass is about.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// Record is an event with its place in time.
type Record struct {
	Time       time.Time
	Controller string
	Object     Object
	// Pass tells passes of one process apart; it grows.
	Pass  uint64
	Event Event
}

// Sink receives records in the order in which they happened within a pass. It must be
// safe for concurrent use and must not block.
type Sink interface{ Record(Record) }

// Pass is one visit of one object. The zero value and nil drop what is emitted.
type Pass struct {
	sink       Sink
	controller string
	object     Object
	id         uint64
}

// NewPass opens a pass whose events go to sink; a nil sink drops them.
func NewPass(sink Sink, controller string, object Object, id uint64) *Pass {
	return &Pass{sink: sink, controller: controller, object: object, id: id}
}

// Emit records e now.
func (p *Pass) Emit(e Event) {
	if p == nil || p.sink == nil {
		return
	}
	p.sink.Record(Record{Time: time.Now(), Controller: p.controller, Object: p.object, Pass: p.id, Event: e})
}

type contextKey struct{}

// Into returns a context that carries p.
func Into(ctx context.Context, p *Pass) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From returns the pass that ctx carries, or nil, which drops events.
func From(ctx context.Context) *Pass {
	p, _ := ctx.Value(contextKey{}).(*Pass)
	return p
}
