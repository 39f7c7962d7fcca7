package fault

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/report"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
)

//arch:state a command line flag, which is one per process
var htmlFlag = flag.String("fault.html", "", "a folder; each exploration writes a page with its schedules and findings there")

// notePlayed records a schedule for the page.
func (e *exploration) notePlayed(j run.Job, r run.Result, group string) {
	if e.pages == "" || r.Void || r.Run == nil {
		return
	}
	e.played = append(e.played, report.Played{
		Token: j.Schedule.Token(e.scenario.Name), Kind: j.Schedule[0].Kind, Call: placeOf(e.reference.Run, r.Run), Group: group,
	})
}

// placeOf is the call of the undisturbed run at which another one was disturbed first. What hits no call, such
// as an event, comes before the call that was made next.
func placeOf(undisturbed, r *history.Run) int {
	if len(r.Faults) == 0 {
		return len(undisturbed.Calls)
	}
	first := r.Faults[0]
	if first.Call != history.Nobody {
		return first.Call
	}
	return min(first.Next, len(undisturbed.Calls))
}

// writePage writes the page if that is asked for.
func (e *exploration) writePage() error {
	if e.pages == "" {
		return nil
	}
	page := report.Page{Exploration: e.report.exploration(), Undisturbed: e.reference.Run, Played: e.played}
	groups, findings := e.report.groups()
	texts := e.report.texts()
	for i, group := range groups {
		page.Found = append(page.Found, report.Found{Group: group, Violations: findings[group][0].found.Violations, Text: texts[i]})
	}
	file := filepath.Join(e.pages, fileName(e.scenario.Name)+".html")
	if err := os.MkdirAll(e.pages, 0o750); err != nil {
		return fmt.Errorf("-fault.html: %w", err)
	}
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("-fault.html: %w", err)
	}
	err = report.WritePage(f, &page)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("-fault.html: %w", err)
	}
	e.teller.mention("see " + file)
	return nil
}

// fileName is a scenario's name as part of a file's.
func fileName(scenario string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>| `, r) {
			return '-'
		}
		return r
	}, scenario)
}
