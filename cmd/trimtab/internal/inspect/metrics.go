package inspect

import (
	"context"
	"encoding/json"
	"io"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/trimtab-dev/trimtab/internal/running"
)

// Describe returns what the operator says about itself.
func (o Operator) Describe(ctx context.Context) (running.Operator, error) {
	var d running.Operator
	err := o.get(ctx, running.Path, func(body io.Reader) error { return json.NewDecoder(body).Decode(&d) })
	return d, err
}

// Metrics returns the metrics of the operator's process.
func (o Operator) Metrics(ctx context.Context) (m Metrics, err error) {
	err = o.get(ctx, "/debug/metrics", func(body io.Reader) error {
		p := expfmt.NewTextParser(model.UTF8Validation)
		m, err = p.TextToMetricFamilies(body)
		return err
	})
	return m, err
}

// Metrics are those of a process at one moment, by name.
type Metrics map[string]*dto.MetricFamily

// Where selects series by values of their labels.
type Where map[string]string

// Sum adds the series of a counter or a gauge.
func (m Metrics) Sum(name string, where Where) (sum float64) {
	for _, s := range m.series(name, where) {
		sum += valueOf(s)
	}
	return sum
}

// By adds the series of a counter or a gauge for each value of a label.
func (m Metrics) By(name, label string, where Where) map[string]float64 {
	sums := map[string]float64{}
	for _, s := range m.series(name, where) {
		sums[labelOf(s, label)] += valueOf(s)
	}
	return sums
}

// Mean is the mean of what a histogram has observed, in seconds; zero if that is nothing.
func (m Metrics) Mean(name string, where Where) time.Duration {
	var sum, count float64
	for _, s := range m.series(name, where) {
		sum += s.GetHistogram().GetSampleSum()
		count += float64(s.GetHistogram().GetSampleCount())
	}
	if count == 0 {
		return 0
	}
	return time.Duration(sum / count * float64(time.Second))
}

func (m Metrics) series(name string, where Where) (found []*dto.Metric) {
	for _, s := range m[name].GetMetric() {
		fits := true
		for label, value := range where {
			fits = fits && labelOf(s, label) == value
		}
		if fits {
			found = append(found, s)
		}
	}
	return found
}

func labelOf(s *dto.Metric, name string) string {
	for _, l := range s.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func valueOf(s *dto.Metric) float64 {
	return s.GetCounter().GetValue() + s.GetGauge().GetValue() + s.GetUntyped().GetValue()
}
