package engine

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/metric"
)

// newCallsTotal returns the counter of external API calls.
func newCallsTotal() *prometheus.CounterVec {
	return metric.Registered(metric.ExternalCalls.CounterVec())
}

// newLeftBehind returns the gauge of abandoned calls, on which to alert where a driver may ignore
// its deadline.
func newLeftBehind() *prometheus.GaugeVec {
	return metric.Registered(metric.LeftBehind.GaugeVec())
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
