package trace

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Object names what a pass is about.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// String is the object in people's words: "Stream default/orders".
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Record is an event with its place in time. Its JSON form is one object: the fields here
// in lower case, "event" with the event's name, and the event's own fields beside them.
// Durations are in nanoseconds.
type Record struct {
	Time       time.Time
	Controller string
	Object     Object
	// Pass tells passes of one controller in one process apart; it grows.
	Pass  uint64
	Event Event
}

// Sink receives records in the order in which they happened within a pass. It must be
// safe for concurrent use and must not block; wrap one that may in a [Buffer]. A panic in
// it costs the record and no more, see [Pass.Err].
type Sink interface{ Record(Record) }

// Pass is one visit of one object. The zero value and nil drop what is emitted. It is safe
// for concurrent use and must not be copied.
type Pass struct {
	sink       Sink
	controller string
	object     Object
	id         uint64

	mu  sync.Mutex
	err error // guarded by mu
}

// NewPass opens a pass whose events go to sink; a nil sink drops them.
func NewPass(sink Sink, controller string, object Object, id uint64) *Pass {
	return &Pass{sink: sink, controller: controller, object: object, id: id}
}

// Emit records e now. Texts longer than 4 KiB are cut and credentials in URLs redacted.
func (p *Pass) Emit(e Event) {
	if p == nil || p.sink == nil || e == nil {
		return
	}
	defer p.survive()
	p.sink.Record(Record{
		Time: time.Now(), Controller: p.controller, Object: p.object, Pass: p.id,
		Event: eachText(e, clean),
	})
}

// Err is the first panic of the pass's sink, or nil. Whoever opened the pass logs it:
// a broken sink must not stop the work that it watches, but it should not stay unseen.
func (p *Pass) Err() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// survive is deferred around a sink.
func (p *Pass) survive() {
	r := recover()
	if r == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = fmt.Errorf("record a trace event: the sink panicked: %v", r)
	}
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
