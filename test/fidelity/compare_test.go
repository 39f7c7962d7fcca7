//go:build !race

package fidelity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
)

// normal is a transcript as text that two servers that agree make equally.
type normal struct {
	// Steps are answers and states, one a request.
	Steps []string
	// Events are those of one resource in their order, or if garbage was collected meanwhile,
	// of one object.
	Events []string
}

// normalize makes a transcript comparable.
func normalize(t transcript, s sequence, ns string) normal {
	n := newNormalizer(ns)
	var out normal
	for _, st := range t.steps {
		text := fmt.Sprintf("%d %s", st.answer.Code, n.document(st.answer.Body))
		for _, w := range st.answer.Warnings {
			text += "\n" + n.text(w)
		}
		if st.after.Code != 0 {
			text += fmt.Sprintf("\nafterwards %d %s", st.after.Code, n.document(st.after.Body))
		}
		out.Steps = append(out.Steps, text)
	}
	events := slices.Clone(t.events)
	order := map[ref]int{}
	for i, e := range events {
		if _, ok := order[e.ref]; !ok {
			order[e.ref] = i
		}
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if c := cmp.Compare(a.ref.resource, b.ref.resource); c != 0 || !s.collects() {
			return c
		}
		return cmp.Compare(order[a.ref], order[b.ref])
	})
	for _, e := range events {
		out.Events = append(out.Events, fmt.Sprintf("%s %s %s", e.kind, n.text(e.ref.String()), n.document(e.raw)))
	}
	return out
}

// difference describes where two servers part, "" if nowhere: the first request whose answer
// or state differs, else the first event.
func difference(s sequence, a, b normal, nameA, nameB string) string {
	for i := range min(len(a.Steps), len(b.Steps)) {
		if a.Steps[i] != b.Steps[i] {
			return fmt.Sprintf("request %d, %s (-%s +%s):\n%s", i, s.Ops[i], nameA, nameB,
				gocmp.Diff(lines(a.Steps[i]), lines(b.Steps[i])))
		}
	}
	for i := range max(len(a.Events), len(b.Events)) {
		x, y := at(a.Events, i), at(b.Events, i)
		if x != y {
			return fmt.Sprintf("watch event %d of %d and %d (-%s +%s):\n%s", i, len(a.Events), len(b.Events), nameA, nameB,
				gocmp.Diff(lines(x), lines(y)))
		}
	}
	return ""
}

func lines(s string) []string { return strings.Split(s, "\n") }

func at(all []string, i int) string {
	if i < len(all) {
		return all[i]
	}
	return "no event"
}
