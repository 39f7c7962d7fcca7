package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/trace"
)

// Pass is one pass over an object, as far as it was recorded.
type Pass struct {
	Controller string
	Object     trace.Object
	// Number is that of [trace.Record].
	Number uint64
	// Records are what happened, in order. There is at least one.
	Records []trace.Record
}

// Passes groups records by pass, in the order in which the passes began. Concurrent passes may be interleaved.
func Passes(records []trace.Record) []Pass {
	type key struct {
		controller string
		object     trace.Object
		number     uint64
	}
	var all []Pass
	current := map[key]int{}
	for _, r := range records {
		k := key{r.Controller, r.Object, r.Pass}
		i, known := current[k]
		if _, start := r.Event.(trace.Start); start || !known { // numbers repeat when a process is restarted
			i = len(all)
			all, current[k] = append(all, Pass{Controller: r.Controller, Object: r.Object, Number: r.Pass}), i
		}
		all[i].Records = append(all[i].Records, r)
	}
	return all
}

// Began is the time of the first record.
func (p Pass) Began() time.Time { return p.Records[0].Time }

// Start is the first event of the pass. It is missing if the recorder has dropped the beginning of the pass.
func (p Pass) Start() (start trace.Start, recorded bool) {
	start, recorded = p.Records[0].Event.(trace.Start)
	return start, recorded
}

// End is the last event of the pass. It is missing while the pass goes on, and if its process was killed.
func (p Pass) End() (end trace.End, recorded bool) {
	end, recorded = p.Records[len(p.Records)-1].Event.(trace.End)
	return end, recorded
}

// Lines are the lines of [trace.Transcript], one for each record: they have nothing that differs from run to run.
func (p Pass) Lines() []string {
	lines := strings.Split(strings.TrimSuffix(trace.Transcript(p.Records), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return lines[1:] // the first one names the object
}

// Changed is what the pass has changed, or tried to change, in a few words for each change. It is empty for most passes.
func (p Pass) Changed() []string {
	var changed []string
	add := func(text, err string) {
		if err != "" {
			text += " failed"
		}
		if !slices.Contains(changed, text) {
			changed = append(changed, text)
		}
	}
	for _, r := range p.Records {
		switch e := r.Event.(type) {
		case trace.Call:
			if e.Mutating {
				add(strings.TrimSpace(e.Op+" "+e.Target), e.Err)
			}
		case trace.Write:
			what := "object"
			if e.Subresource != "" {
				what = e.Subresource
			}
			add(e.Verb+" "+what, e.Err)
		case trace.Transition:
			if e.From != "" {
				add(fmt.Sprintf("state %s → %s", e.From, e.To), "")
			} else {
				add("state "+e.To, "")
			}
		case trace.Start, trace.Decision, trace.Drift, trace.End:
		}
	}
	return changed
}

// Line is a line of the comparison of two passes.
type Line struct {
	// Sign is - for a line of the first pass alone, + for one of the second alone, and = for one of both.
	Sign string `json:"sign"`
	Text string `json:"text"`
}

// mostCompared bounds the work of Compare: about 2,000 lines each.
const mostCompared = 4_000_000

// Compare returns the lines of two passes, by their longest common subsequence. Passes that are too long for that have no line in
// common but those with which both begin.
func Compare(first, second Pass) (lines []Line) {
	a, b := first.Lines(), second.Lines()
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		lines = append(lines, Line{"=", a[0]})
		a, b = a[1:], b[1:]
	}
	if len(a)*len(b) > mostCompared {
		return slices.Concat(lines, signed("-", a), signed("+", b))
	}
	return append(lines, compare(a, b)...)
}

func signed(sign string, all []string) (lines []Line) {
	for _, text := range all {
		lines = append(lines, Line{sign, text})
	}
	return lines
}

// compare returns the lines of a and b by their longest common subsequence.
func compare(a, b []string) (lines []Line) {
	common := make([][]int, len(a)+1) // of a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			if x == y {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, Line{"=", a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[i+1][j] >= common[i][j+1]):
			lines = append(lines, Line{"-", a[i]})
			i++
		default:
			lines = append(lines, Line{"+", b[j]})
			j++
		}
	}
	return lines
}
