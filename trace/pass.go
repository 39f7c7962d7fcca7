package trace

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Object identifies the object of a pass.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	// APIVersion is that of the kind. It is for spans; records do not have it.
	APIVersion string `json:"-"`
}

// String returns the object in the form "Stream default/orders".
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Record is an event with its time, its pass and its object. The JSON form is one object: the
// fields of Record in lower case, "event" with the name of the event, and the event's own fields.
// Durations are in nanoseconds.
type Record struct {
	Time       time.Time
	Controller string
	Object     Object
	// Pass numbers the passes of one controller in one process, in ascending order.
	Pass  uint64
	Event Event
}

// Sink receives the records of a pass in the order in which they happened. It must be safe for
// concurrent use and must not block; wrap a sink that may block in a [Buffer]. If it panics, only
// the record is lost; see [Pass.Err].
type Sink interface{ Record(Record) }

// Pass is one reconciliation of one object. A nil Pass and the zero value drop all events. A
// Pass is safe for concurrent use and must not be copied.
type Pass struct {
	sink       Sink
	controller string
	object     Object
	id         uint64

	mu  sync.Mutex
	err error // guarded by mu
}

// NewPass returns a pass that sends its events to sink. If sink is nil, they are dropped.
func NewPass(sink Sink, controller string, object Object, id uint64) *Pass {
	return &Pass{sink: sink, controller: controller, object: object, id: id}
}

// Emit records e with the current time. It removes credentials from all texts and truncates
// them to 4 KiB.
func (p *Pass) Emit(e Event) {
	if p == nil || p.sink == nil || e == nil {
		return
	}
	defer p.survive()
	p.sink.Record(Record{
		Time: time.Now(), Controller: p.controller, Object: p.object, Pass: p.id,
		Event: cleaned(e),
	})
}

// Err returns the first panic of the sink as an error, or nil. A broken sink must not disturb
// the pass, but it should not go unnoticed either: the code that opened the pass should log the
// error.
func (p *Pass) Err() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// survive recovers from a panic of the sink. It is called by defer.
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

// Into returns a copy of ctx that carries p.
func Into(ctx context.Context, p *Pass) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From returns the pass that ctx carries, or nil if there is none. A nil Pass drops events.
func From(ctx context.Context) *Pass {
	p, _ := ctx.Value(contextKey{}).(*Pass)
	return p
}
