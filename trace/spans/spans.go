// Package spans has OpenTelemetry trace the passes of controllers.
//
// [New] takes a provider, which the operator makes with the SDK of OpenTelemetry; this package uses the API alone.
// Start with its example.
package spans

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/trimtab-dev/trimtab/trace"
)

// New returns spans that provider records, for loop.Controller.SpansTo. Each pass is one span, named "reconcile" and
// the kind. Its attributes are the controller, the keys of the object as in logs, the attempt and the outcome; a pass that
// failed has the status Error. Spans that the controller's code opens with the context of the pass are its children.
// New panics if provider is nil.
func New(provider oteltrace.TracerProvider) trace.Spans {
	if provider == nil {
		panic("spans: New needs a TracerProvider, for example that of the SDK of OpenTelemetry")
	}
	return tracer{provider.Tracer("github.com/trimtab-dev/trimtab/trace/spans")}
}

// noNamespace is the word of package logs for it.
const noNamespace = "no namespace"

type tracer struct{ tracer oteltrace.Tracer }

// Open implements [trace.Spans].
func (t tracer) Open(ctx context.Context, controller string, o trace.Object, s trace.Start) (context.Context, func(trace.End)) {
	namespace := cmp.Or(o.Namespace, noNamespace)
	ctx, span := t.tracer.Start(ctx, "reconcile "+o.Kind, oteltrace.WithAttributes(
		attribute.String("controller", controller),
		attribute.String("resource.apiVersion", o.APIVersion),
		attribute.String("resource.kind", o.Kind), attribute.String("resource.namespace", namespace),
		attribute.String("resource.name", o.Name), attribute.String("resource.uid", o.UID),
		attribute.Int64("resource.generation", s.Generation), attribute.String("resource.resourceVersion", s.ResourceVersion),
		attribute.Int("attempt", s.Attempt), attribute.Bool("deleting", s.Deleting),
	))
	return ctx, func(e trace.End) {
		span.SetAttributes(attribute.String("outcome", e.Outcome))
		if e.Err != "" {
			span.SetStatus(codes.Error, e.Err)
		}
		span.End()
	}
}
