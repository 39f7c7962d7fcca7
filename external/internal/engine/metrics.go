package engine

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

// newCallsTotal returns the counter of external API calls. Its labels are closed sets.
func newCallsTotal() *prometheus.CounterVec {
	return registered(prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trimtab_external_calls_total", Help: "Calls of external APIs, by what they came to: ok, Missing or the class of the error.",
	}, []string{"kind", "op", "class"}))
}

// newLeftBehind returns the gauge of abandoned calls, on which to alert where a driver may ignore
// its deadline.
func newLeftBehind() *prometheus.GaugeVec {
	return registered(prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "trimtab_external_calls_left_behind", Help: "Calls of drivers that have not returned although their time is over.",
	}, []string{"kind"}))
}

// registered returns c, or the collector that is already registered: the controllers of one
// process share it.
func registered[C prometheus.Collector](c C) C {
	err := metrics.Registry.Register(c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if before, ok := already.ExistingCollector.(C); ok {
			return before
		}
	}
	return c
}

// count counts a call that was answered.
func (e *Engine) count(a decide.Action, got answer) {
	if e.calls == nil {
		return
	}
	class := "ok"
	switch {
	case got.failure != nil:
		class = got.failure.class.String()
	case got.absent:
		class = "Missing"
	}
	e.calls.WithLabelValues(e.kind, a.String(), class).Inc()
}
