package loop

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Metrics carry the controller and closed sets as labels, never an object's name.
var (
	passes     = counter("trimtab_passes_total", "Passes over objects.", "controller", "outcome")
	writes     = counter("trimtab_writes_total", "Writes to the controller's own objects.", "controller", "target", "result")
	overBudget = counter("trimtab_budget_exceeded_total", "Passes that wrote more often than they may.", "controller")
	limited    = counter("trimtab_rate_limited_total", "Passes put off because the object was reconciled often enough.", "controller")
	staleSkips = counter("trimtab_stale_skips_total", "Passes put off because the cache lagged behind what the API server is known to have.", "controller")
	vanishings = counter("trimtab_vanished_total", "Objects that went past their finalizer, by what became of them.", "controller", "reason")
	liveReads  = counter("trimtab_live_fallback_total", "Reads past a cache that lags, or may lag.", "controller")
	unwritable = counter("trimtab_status_unwritable_total", "Statuses that the API server does not take.", "controller", "reason")

	objects = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "trimtab_objects", Help: "Objects by what their status says.",
	}, []string{"kind", "state", "reason"})
)

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// registerMetrics adds them to controller-runtime's registry; doing so again is harmless.
func registerMetrics() {
	for _, c := range []prometheus.Collector{passes, writes, overBudget, limited, staleSkips, liveReads, vanishings, unwritable, objects} {
		if err := metrics.Registry.Register(c); err != nil {
			if _, already := errors.AsType[prometheus.AlreadyRegisteredError](err); !already {
				panic("loop: register metrics: " + err.Error())
			}
		}
	}
}
