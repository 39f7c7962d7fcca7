package spans_test

import (
	oteltrace "go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"

	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trace/spans"
)

// An operator has its provider, which it made with the SDK, trace the passes of a controller.
func ExampleNew() {
	traced := func(r loop.Reconciler[*corev1.Pod], provider oteltrace.TracerProvider) *loop.Controller[*corev1.Pod] {
		c := loop.New(r, loop.Options[*corev1.Pod]{})
		c.SpansTo(spans.New(provider))
		return c
	}
	_ = traced
	// Output:
}
