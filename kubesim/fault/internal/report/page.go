package report

import (
	_ "embed"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

//go:embed page.html
var pageText string

//arch:state a parsed template, which nobody changes
var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Page is what the HTML page of an exploration shows.
type Page struct {
	Exploration Exploration
	// Undisturbed is the run by which the schedules were planned.
	Undisturbed *history.Run
	// Played are the schedules that were played, in any order.
	Played []Played
	// Found are the findings as they are reported, the worst first.
	Found []Found
}

// Played is one schedule that was played.
type Played struct {
	// Token replays it, Kind is that of its first disturbance: "crash-after".
	Token, Kind string
	// Call is the call of the undisturbed run at which the disturbance comes, or before which it comes.
	Call int
	// Group is the one of the finding; empty for none.
	Group string
}

// Found is a group of findings.
type Found struct {
	// Group names it in [Played].
	Group string
	// Violations are those of the shortest schedule, Text is its report.
	Violations []history.Violation
	Text       string
}

// WritePage writes the page as HTML.
func WritePage(w io.Writer, p *Page) error { return pageTemplate.Execute(w, p.view()) }

// The view is what the template fills in.
type (
	pageView struct {
		Scenario, Verdict, Calls, Writes, Schedules, Took, Pruned, Masked string

		Notes    []string
		Findings []pageFinding
		Kinds    []string
		Rows     []pageRow
		Columns  int
	}
	pageFinding struct {
		Number            int
		Title, Invariants string
		Lines             []pageLine
	}
	pageLine struct{ Text, Class string }
	pageRow  struct {
		Step                           string // the name of the step that begins with this row
		Call, Time, Reconcile, Request string
		Cells                          []pageCell
	}
	pageCell struct {
		Played  int
		Finding int // the number of the first finding; 0 is none
		Tokens  string
	}
)

func (p *Page) view() pageView {
	e := p.Exploration
	v := pageView{
		Scenario: e.Scenario, Verdict: "every invariant holds", Calls: number(e.Calls, "call"), Writes: strconv.Itoa(e.Writes),
		Schedules: list(e.Schedules, "no schedule"), Took: e.Took.Round(100 * time.Millisecond).String(),
		Masked: strings.Join(e.Masked, ", "), Notes: e.Notes, Kinds: p.kinds(),
	}
	if len(p.Found) > 0 {
		v.Verdict = number(len(p.Found), "finding")
	}
	if total(e.Pruned) > 0 {
		v.Pruned = reasons(e.Pruned)
	}
	numbers := map[string]int{}
	for i, f := range p.Found {
		numbers[f.Group] = i + 1
		v.Findings = append(v.Findings, newPageFinding(i+1, f))
	}
	v.Columns = 4 + len(v.Kinds)
	v.Rows = p.rows(v.Kinds, numbers)
	return v
}

// kinds are the kinds of disturbances in the order in which they first appear.
func (p *Page) kinds() (all []string) {
	for _, s := range p.Played {
		if !slices.Contains(all, s.Kind) {
			all = append(all, s.Kind)
		}
	}
	return all
}

func newPageFinding(n int, f Found) pageFinding {
	var ids []string
	for _, v := range f.Violations {
		if !slices.Contains(ids, v.Invariant) {
			ids = append(ids, v.Invariant)
		}
	}
	view := pageFinding{Number: n, Title: f.Violations[0].Message, Invariants: strings.Join(ids, ", ")}
	for line := range strings.Lines(strings.TrimRight(f.Text, "\n")) {
		line = strings.TrimSuffix(line, "\n")
		view.Lines = append(view.Lines, pageLine{line, classOf(line)})
	}
	return view
}

// classOf is how a line of a report looks: what is gone, what is new, where the disturbance is.
func classOf(line string) string {
	switch {
	case strings.HasPrefix(line, "  >>"):
		return "hit"
	case strings.HasPrefix(line, "  - "):
		return "del"
	case strings.HasPrefix(line, "  + "):
		return "ins"
	}
	return ""
}

// rows is one row for each call, and a last one for what is disturbed after all calls.
func (p *Page) rows(kinds []string, findings map[string]int) []pageRow {
	r := p.Undisturbed
	rows := make([]pageRow, len(r.Calls)+1)
	for i := range r.Calls {
		c := &r.Calls[i]
		rows[i] = pageRow{Call: strconv.Itoa(i), Time: clock(r, c.At), Reconcile: passOf(r, c), Request: c.Target()}
	}
	rows[len(r.Calls)].Request = "at rest"
	for i := range rows {
		rows[i].Cells = make([]pageCell, len(kinds))
	}
	for _, s := range r.Steps {
		if row := &rows[min(s.Call, len(r.Calls))]; row.Step == "" {
			row.Step = s.Name
		} else {
			row.Step += "; " + s.Name
		}
	}
	for _, s := range p.Played {
		c := &rows[min(s.Call, len(r.Calls))].Cells[slices.Index(kinds, s.Kind)]
		c.Played++
		c.Tokens = strings.TrimPrefix(c.Tokens+"\n"+s.Token, "\n")
		if n := findings[s.Group]; n > 0 && (c.Finding == 0 || n < c.Finding) {
			c.Finding = n
		}
	}
	// The last row is needed only if something is in it.
	if last := rows[len(r.Calls)]; last.Step == "" && !slices.ContainsFunc(last.Cells, func(c pageCell) bool { return c.Played > 0 }) {
		rows = rows[:len(r.Calls)]
	}
	return rows
}
