// Package report brings the report of a pass into the form in which it is written.
package report

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// Normalize returns r with texts that the API server accepts, and with one condition of each type,
// sorted by type. If r has several of one type, the last one is kept. Conditions that are in this form
// are not copied.
func Normalize(r conditions.Report) conditions.Report {
	if !isNormal(r.Conditions) {
		list := slices.Clone(r.Conditions)
		for i := range list {
			list[i].Reason, list[i].Message = plain.Reason(list[i].Reason), plain.Line(list[i].Message)
		}
		slices.Reverse(list) // so that the last of one type comes first
		slices.SortStableFunc(list, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
		r.Conditions = slices.CompactFunc(list, func(a, b metav1.Condition) bool { return a.Type == b.Type })
	}
	r.Reason, r.Message = plain.Reason(r.Reason), plain.Line(r.Message)
	if r.Event.Reason != "" {
		r.Event.Reason, r.Event.Note = plain.Reason(r.Event.Reason), plain.Line(r.Event.Note)
	}
	return r
}

// isNormal reports whether Normalize has nothing to do for conditions.
func isNormal(list []metav1.Condition) bool {
	for i, c := range list {
		if i > 0 && list[i-1].Type >= c.Type || plain.Reason(c.Reason) != c.Reason || plain.Line(c.Message) != c.Message {
			return false
		}
	}
	return true
}
