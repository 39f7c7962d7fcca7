package operator

import (
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trimtab-dev/trimtab/internal/metric"
	"github.com/trimtab-dev/trimtab/trace"
)

// spansTo gives c the spans of the operator.
func (d *design) spansTo(c Controller) {
	if s, ok := c.(interface{ SpansTo(spans trace.Spans) }); ok && d.options.Spans != nil {
		s.SpansTo(d.options.Spans)
	}
}

// scope returns the scope of the operator's metrics. Unless all controllers say what their name is, series of all
// controllers are in it.
func (d *design) scope() (metric.Scope, error) {
	s := metric.Scope{Operator: d.options.Name}
	for i, c := range d.controllers {
		s.Kinds = append(s.Kinds, d.kinds[i].Kind)
		if c, ok := c.(interface {
			Name(scheme *runtime.Scheme) (string, error)
		}); ok {
			name, err := c.Name(d.scheme)
			if err != nil {
				return s, err
			}
			s.Controllers = append(s.Controllers, name)
		}
	}
	if len(s.Controllers) != len(d.controllers) {
		s.Controllers = nil
	}
	slices.Sort(s.Kinds)
	s.Kinds = slices.Compact(s.Kinds)
	return s, nil
}

func dashboardCmd(o Options) *cobra.Command {
	return monitoringCmd(o, "dashboard", "Print a dashboard of the operator's metrics, for Grafana", metric.Scope.Dashboard)
}

func alertsCmd(o Options) *cobra.Command {
	return monitoringCmd(o, "alerts", "Print rules for Prometheus about the operator's metrics", func(s metric.Scope) ([]byte, error) {
		return s.Alerts(), nil
	})
}

// monitoringCmd returns a command that prints what is made from the scope of the operator.
func monitoringCmd(o Options, use, short string, from func(metric.Scope) ([]byte, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		Long: short + ". The queries select the operator's own controllers and\nkinds; no cluster is needed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := o.read()
			if err != nil {
				return err
			}
			scope, err := d.scope()
			if err != nil {
				return err
			}
			text, err := from(scope)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
}
