// Package metric is the registry of trimtab's metrics: every collector, the dashboard, the alerts and the table in
// docs/metrics.md are made from it.
//
// Labels are closed sets: controllers, kinds, words of trimtab and names that the operator's author gives to sources, never an
// object's name or namespace.
package metric

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Metric describes a metric.
type Metric struct {
	Name, Help string
	Type       Type
	Labels     []string
	// Buckets are those of a histogram, in seconds.
	Buckets []float64
}

// Type is the type of a metric, as Prometheus calls it.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// CounterVec returns a collector of a counter.
func (m Metric) CounterVec() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// GaugeVec returns a collector of a gauge.
func (m Metric) GaugeVec() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// HistogramVec returns a collector of a histogram.
func (m Metric) HistogramVec() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: m.Buckets}, m.Labels)
}

// Registered adds c to controller-runtime's registry and returns it, or the collector of the same metric that is there
// already: the controllers of a process share it.
func Registered[C prometheus.Collector](c C) C {
	err := metrics.Registry.Register(c)
	if err == nil {
		return c
	}
	if already, is := errors.AsType[prometheus.AlreadyRegisteredError](err); is {
		if before, same := already.ExistingCollector.(C); same {
			return before
		}
	}
	panic("register metrics: " + err.Error())
}
