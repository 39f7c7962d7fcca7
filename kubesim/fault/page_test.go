package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestPage proves that the HTML page of an exploration has a row for each call, all schedules in its grid, a link
// from each broken one to a finding that exists, and each finding with its report.
func TestPage(t *testing.T) {
	s := toyLife("remembers in the object alone")
	s.Name = "toy <b>/life"
	e, err := newExploration(t, &s, options{kinds: []Kind{Crashes, Stale, Duplicates}})
	if err != nil {
		t.Fatal(err)
	}
	defer quieten()()
	e.pages = filepath.Join(t.TempDir(), "pages")
	r, err := e.explore()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(e.pages, "toy--b--life.html"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	if strings.Contains(page, "<b>/life") || !strings.Contains(page, "toy &lt;b&gt;/life") {
		t.Error("the name of the scenario is not escaped")
	}
	for i := range r.Calls {
		if !strings.Contains(page, fmt.Sprintf("<tr><td>%d</td>", i)) {
			t.Errorf("there is no row for call %d", i)
		}
	}
	for _, row := range strings.Split(page, "<tr><td>")[1:] {
		call, _, _ := strings.Cut(row, "<")
		for _, crash := range regexp.MustCompile(`crash-(?:before|after)@(\d+)`).FindAllStringSubmatch(row, -1) {
			if crash[1] != call {
				t.Errorf("the row of call %s has %s", call, crash[0])
			}
		}
	}
	played, broken := 0, 0
	for _, cell := range regexp.MustCompile(`<td class="cell (ok|broken)"[^>]*>(?:<a href="#(finding-\d+)">)?(\d+)`).FindAllStringSubmatch(page, -1) {
		n, err := strconv.Atoi(cell[3])
		if err != nil {
			t.Fatal(err)
		}
		played += n
		if cell[1] == "broken" {
			broken++
			if !strings.Contains(page, fmt.Sprintf("id=%q", cell[2])) {
				t.Errorf("a cell links to %s, which does not exist", cell[2])
			}
		}
	}
	if want := r.Schedules[Crashes] + r.Schedules[Stale] + r.Schedules[Duplicates]; played != want || broken == 0 {
		t.Errorf("the grid has %d schedules, %d cells with broken ones; %d were played, and %d broke something", played, broken, want, len(r.Findings))
	}
	groups, findings := r.groups()
	for i, group := range groups {
		if id := fmt.Sprintf(`id="finding-%d"`, i+1); !strings.Contains(page, id) || !strings.Contains(page, "-fault.replay=") {
			t.Errorf("there is no %s for %v", id, findings[group][0].Violations)
		}
	}
}
