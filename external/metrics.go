package external

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// newCallsTotal makes the counter of calls of external APIs, or returns the one that is
// registered: the controllers of one process share it. Its labels are closed sets.
func newCallsTotal() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trimtab_external_calls_total", Help: "Calls of external APIs, by what they came to: ok, Missing or the class of the error.",
	}, []string{"kind", "op", "class"})
	err := metrics.Registry.Register(c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if registered, ok := already.ExistingCollector.(*prometheus.CounterVec); ok {
			return registered
		}
	}
	return c
}

// count counts a call that was answered.
func (e *engine[T, C, O]) count(a Action, got answer) {
	if e.calls == nil {
		return
	}
	class := "ok"
	switch {
	case got.failed:
		class = got.class.String()
	case got.absent:
		class = "Missing"
	}
	e.calls.WithLabelValues(e.kind, a.String(), class).Inc()
}
