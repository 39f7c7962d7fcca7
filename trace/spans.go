package trace

import "context"

// Spans opens a span for each pass, in a system of distributed tracing. Package trace/spans has those of OpenTelemetry.
// Its method must be safe for concurrent use. A panic costs the span, not the pass.
type Spans interface {
	// Open opens the span of a pass of a controller over an object. It returns the context for the code that the pass
	// calls, and a function that closes the span, which is called once.
	Open(ctx context.Context, controller string, o Object, s Start) (context.Context, func(End))
}
