package metric

import (
	"fmt"
	"strings"
)

// The queries of dashboards and alerts are made of these. Each names a metric of the table, and labels that it has.

// rate returns how often a counter grows per second, by labels.
func (m Metric) rate(window string, by ...string) string {
	return fmt.Sprintf("sum%s (rate(%s[%s]))", grouped(by), m.Name, window)
}

// sum returns the sum of a gauge, by labels. where selects series, as in `state="Failed"`, and may be empty.
func (m Metric) sum(where string, by ...string) string {
	return fmt.Sprintf("sum%s (%s%s)", grouped(by), m.Name, selected(where))
}

// growth returns by how much a counter grew, by labels.
func (m Metric) growth(window string, by ...string) string { return m.growthOf("", window, by...) }

// growthOf is growth of the series that where selects.
func (m Metric) growthOf(where, window string, by ...string) string {
	return fmt.Sprintf("sum%s (increase(%s%s[%s]))", grouped(by), m.Name, selected(where), window)
}

// quantile returns a quantile of a histogram, by labels.
func (m Metric) quantile(q, window string, by ...string) string {
	return fmt.Sprintf("histogram_quantile(%s, sum%s (rate(%s_bucket[%s])))", q, grouped(append([]string{"le"}, by...)), m.Name, window)
}

func selected(where string) string {
	if where == "" {
		return ""
	}
	return "{" + where + "}"
}

func grouped(by []string) string {
	if len(by) == 0 {
		return ""
	}
	return " by (" + strings.Join(by, ", ") + ")"
}
