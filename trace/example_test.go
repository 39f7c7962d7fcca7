package trace_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trimtab-dev/trimtab/trace"
	"github.com/trimtab-dev/trimtab/trace/tracetest"
)

// This example emits the events of a pass and prints them as a transcript.
func Example() {
	var rec tracetest.Recorder
	orders := trace.Object{Kind: "Stream", Namespace: "default", Name: "orders"}

	// The loop opens a pass each time it reconciles an object.
	pass := trace.NewPass(&rec, "stream", orders, 1)
	ctx := trace.Into(context.Background(), pass)
	pass.Emit(trace.Start{Generation: 1})

	// Code that the loop calls finds the pass in the context.
	create := func(ctx context.Context) {
		err := errors.New("dial nats://admin:hunter2@nats.example: connection refused")
		trace.From(ctx).Emit(trace.Call{Op: "create", Target: "orders", Mutating: true, Err: err.Error()})
	}
	create(ctx)

	pass.Emit(trace.Transition{From: "Pending", To: "Failed", Reason: "Unreachable"})
	pass.Emit(trace.End{Outcome: "Fail", Again: time.Second, Took: 3 * time.Millisecond})

	fmt.Print(trace.Transcript(rec.Records()))
	// Output:
	// Stream default/orders, pass 1
	//   start    generation 1
	//   create   orders -> error: dial nats://(sensitive)@nats.example: connection refused
	//   state    Pending → Failed (Unreachable)
	//   end      Fail; again in 1s
}
