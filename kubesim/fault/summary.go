package fault

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/report"
)

// replayed is a schedule that was played again.
type replayed struct {
	schedule string // "race@8(1)"; empty for the undisturbed run
	early    bool   // it says nothing
}

// String describes in one line what was explored, and in one more each for masked fields and notes.
func (r Report) String() string {
	line := r.Scenario + ": "
	if r.replay != nil {
		line += r.outcome()
	} else {
		line += r.figures()
	}
	if len(r.Masked) > 0 {
		line += "\n" + report.Wrapped("not compared, as two undisturbed runs differ there (random numbers?): "+strings.Join(r.Masked, ", "), "  ")
	}
	line = strings.TrimSuffix(line, "\n")
	for _, n := range r.Notes {
		line += "\n" + strings.TrimSuffix(report.Wrapped("note: "+n, "  "), "\n")
	}
	return line
}

// outcome is what was replayed and what it broke.
func (r Report) outcome() string {
	line := "replayed " + cmp.Or(r.replay.schedule, "the undisturbed run")
	var broke []string
	for _, f := range r.Findings {
		for _, v := range f.Violations {
			broke = append(broke, string(v.Invariant))
		}
	}
	slices.Sort(broke)
	switch {
	case r.replay.early:
		return line + ": says nothing, the user came too early or nobody could notice it"
	case len(broke) == 0:
		return line + ": every invariant held"
	}
	return line + ": broke " + strings.Join(slices.Compact(broke), ", ")
}

// figures are the figures of an exploration. The kinds add up to all that was played.
func (r Report) figures() string {
	line := fmt.Sprintf("%s, %s; ", plural(r.Writes, "write"), plural(r.Calls, "call"))
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(r.Schedules)) {
		if n := r.Schedules[kind]; n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
		}
	}
	if r.early > 0 {
		kinds = append(kinds, fmt.Sprintf("%d too early to say anything", r.early))
	}
	if played := r.Played(); played == 0 {
		line += "no schedule"
	} else {
		line += fmt.Sprintf("%s in %.1f s: %s", plural(played, "schedule"), r.Took.Seconds(), strings.Join(kinds, ", "))
	}
	left := 0
	for _, n := range r.Pruned {
		left += n
	}
	if left -= min(r.early, r.Pruned[TooEarly]); left > 0 { // those are counted with the ones that were played
		line += fmt.Sprintf("; pruned %d", left)
	}
	if n := len(r.Findings); n > 0 {
		line += "; " + plural(n, "finding")
	}
	return line
}
