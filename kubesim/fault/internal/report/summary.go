package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Count is a number with its name: 28 "crashes".
type Count struct {
	Name string
	N    int
}

// Exploration is what a summary describes.
type Exploration struct {
	Scenario string
	// Replay is set if one schedule was played again; then the figures below say nothing.
	Replay *Replay
	// Writes and Calls are those of the undisturbed run.
	Writes, Calls int
	// Schedules are those played, Pruned those left out; zeros are not told.
	Schedules, Pruned []Count
	// Early is how many schedules were played besides and say nothing, since the user came too early or nobody could notice.
	Early int
	// Findings is how many schedules broke something, Besides what else did: "the undisturbed run".
	Findings int
	Besides  []string
	// Masked are fields that were not compared because the undisturbed runs differ in them.
	Masked []string
	// Notes are sentences on what was left unchecked.
	Notes []string
	Took  time.Duration
}

// Replay is what one schedule came to.
type Replay struct {
	// Schedule is what was played: "race@8(1)"; empty for the undisturbed run.
	Schedule string
	// Broke are the invariants that it broke.
	Broke []string
	// Early means that the schedule says nothing.
	Early bool
}

// Summary tells in one line what was explored, and in one more each for masked fields and notes.
func Summary(e Exploration) string {
	line := e.Scenario + ": "
	if e.Replay != nil {
		line += e.Replay.said()
	} else {
		line += figures(e)
	}
	if len(e.Masked) > 0 {
		line += "\n" + wrapped("not compared, as two undisturbed runs differ there (random numbers?): "+strings.Join(e.Masked, ", "), "  ")
	}
	line = strings.TrimSuffix(line, "\n")
	for _, n := range e.Notes {
		line += "\n" + strings.TrimSuffix(wrapped("note: "+n, "  "), "\n")
	}
	return line
}

// said is what was replayed and what it broke.
func (r *Replay) said() string {
	line := "replayed " + cmp.Or(r.Schedule, "the undisturbed run")
	switch {
	case r.Early:
		return line + ": says nothing, the user came too early or nobody could notice it"
	case len(r.Broke) == 0:
		return line + ": every invariant held"
	}
	return line + ": broke " + strings.Join(r.Broke, ", ")
}

// figures are the figures of an exploration. The kinds add up to all that was played.
func figures(e Exploration) string {
	line := fmt.Sprintf("%s, %s; ", number(e.Writes, "write"), number(e.Calls, "call"))
	kinds := e.Schedules
	if e.Early > 0 {
		kinds = append(slices.Clone(kinds), Count{"too early to say anything", e.Early})
	}
	if sum := total(kinds); sum == 0 {
		line += "no schedule"
	} else {
		line += fmt.Sprintf("%s in %.1f s: %s", number(sum, "schedule"), e.Took.Seconds(), list(kinds, ""))
	}
	if sum := total(e.Pruned); sum > 0 {
		line += fmt.Sprintf("; pruned %d (%s)", sum, reasons(e.Pruned))
	}
	broke := slices.Clone(e.Besides)
	if e.Findings > 0 {
		broke = append([]string{number(e.Findings, "schedule")}, broke...)
	}
	if n := len(broke); n > 1 {
		line += "; " + strings.Join(broke[:n-1], ", ") + " and " + broke[n-1] + " broke an invariant"
	} else if n == 1 {
		line += "; " + broke[0] + " broke an invariant"
	}
	return line
}

func number(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func total(all []Count) int {
	n := 0
	for _, c := range all {
		n += c.N
	}
	return n
}

func list(all []Count, none string) string {
	var parts []string
	for _, c := range all {
		if c.N > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.N, c.Name))
		}
	}
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, ", ")
}

// reasons lists counts, the greatest first.
func reasons(all []Count) string {
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b Count) int { return b.N - a.N })
	var parts []string
	for _, c := range sorted {
		if c.N > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", c.Name, c.N))
		}
	}
	return strings.Join(parts, ", ")
}
