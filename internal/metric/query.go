package metric

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Scope selects the series of one operator. The zero value selects those of all operators.
type Scope struct {
	// Operator is the name of the operator.
	Operator string
	// Controllers and Kinds are the values of the labels controller and kind. None means all.
	Controllers, Kinds []string
}

// id returns the name of what is generated: that of the operator, if there is one.
func (s Scope) id(all string) string { return cmp.Or(s.Operator, all) }

// The queries of dashboards and alerts are made of these. Each names a metric of the table, and labels that it has.

// rate returns how often a counter grows per second, by labels.
func (s Scope) rate(m Metric, window string, by ...string) string {
	return fmt.Sprintf("sum%s (rate(%s%s[%s]))", grouped(by), m.Name, s.selected(m, ""), window)
}

// sum returns the sum of a gauge, by labels. where selects series, as in `state="Failed"`, and may be empty.
func (s Scope) sum(m Metric, where string, by ...string) string {
	return fmt.Sprintf("sum%s (%s%s)", grouped(by), m.Name, s.selected(m, where))
}

// min returns the smallest value of a gauge, by labels.
func (s Scope) min(m Metric, by ...string) string {
	return fmt.Sprintf("min%s (%s%s)", grouped(by), m.Name, s.selected(m, ""))
}

// growth returns by how much a counter grew, by labels.
func (s Scope) growth(m Metric, window string, by ...string) string {
	return s.growthOf(m, "", window, by...)
}

// growthOf is growth of the series that where selects.
func (s Scope) growthOf(m Metric, where, window string, by ...string) string {
	return fmt.Sprintf("sum%s (increase(%s%s[%s]))", grouped(by), m.Name, s.selected(m, where), window)
}

// quantile returns a quantile of a histogram, by labels.
func (s Scope) quantile(m Metric, q, window string, by ...string) string {
	return fmt.Sprintf("histogram_quantile(%s, sum%s (rate(%s_bucket%s[%s])))", q, grouped(append([]string{"le"}, by...)), m.Name, s.selected(m, ""), window)
}

// selected returns the selector of the series of m that are in the scope and that where selects.
func (s Scope) selected(m Metric, where string) string {
	var all []string
	if where != "" {
		all = append(all, where)
	}
	for _, l := range []struct {
		name   string
		values []string
	}{{"controller", s.Controllers}, {"kind", s.Kinds}} {
		if len(l.values) > 0 && slices.Contains(m.Labels, l.name) {
			all = append(all, l.name+`=~"`+strings.Join(l.values, "|")+`"`)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func grouped(by []string) string {
	if len(by) == 0 {
		return ""
	}
	return " by (" + strings.Join(by, ", ") + ")"
}
