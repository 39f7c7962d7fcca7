package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// event is one of go test -json; see go doc test2json and go help buildjson.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// tally sums up the events of all packages.
type tally struct {
	mu       sync.Mutex
	out      io.Writer
	running  map[running]*progress
	packages []took
	tests    []took
	kept     int // packages of which go test has kept the result
}

// running is a package that a command tests. Another command may test it, too, with other tests.
type running struct{ command, name string }

// progress is what is known of a package before it ends.
type progress struct {
	tests []*test
	index map[string]*test
}

// test is what a test printed, or with an empty name its package.
type test struct {
	name    string
	output  strings.Builder
	passed  bool
	ended   bool
	seconds float64
	parent  bool // of subtests, whose time is also its own
}

type took struct {
	name    string
	seconds float64
}

// line takes one line of a command's output.
func (t *tally) line(command, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var e event
	if json.Unmarshal([]byte(text), &e) != nil || e.Action == "build-output" {
		fmt.Fprint(t.out, cmp.Or(e.Output, text))
		return
	}
	if e.Package == "" {
		return
	}
	key := running{command, e.Package}
	p := t.running[key]
	if p == nil {
		p = &progress{index: map[string]*test{}}
		if t.running == nil {
			t.running = map[running]*progress{}
		}
		t.running[key] = p
	}
	switch e.Action {
	case "output":
		p.of(e.Test).output.WriteString(e.Output)
	case "pass", "skip", "fail":
		if e.Test == "" {
			delete(t.running, key)
			t.end(e, p)
			return
		}
		one := p.of(e.Test)
		one.passed, one.ended, one.seconds = e.Action != "fail", true, e.Elapsed
	}
}

// of is the test of that name. It has subtests if there is one whose name continues its own.
func (p *progress) of(name string) *test {
	one := p.index[name]
	if one == nil {
		one = &test{name: name}
		p.index[name], p.tests = one, append(p.tests, one)
		if i := strings.LastIndexByte(name, '/'); i > 0 {
			p.of(name[:i]).parent = true
		}
	}
	return one
}

// race is how the race detector begins a report. The report stands in the output of whatever test printed last, which may have passed.
const race = "WARNING: DATA RACE"

// end prints what there is to see of a package: its last line, and if it failed what the tests printed that did not pass, and reports
// of the race detector.
func (t *tally) end(e event, p *progress) {
	whole := p.of("")
	text := strings.TrimRight(whole.output.String(), "\n")
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if strings.Contains(last, "\t(cached)") { // the times are those of the run that was kept
		t.kept++
		fmt.Fprintln(t.out, last)
		return
	}
	t.packages = append(t.packages, took{e.Package, e.Elapsed})
	for _, one := range p.tests {
		if one.ended && !one.parent {
			t.tests = append(t.tests, took{e.Package + " " + one.name, one.seconds})
		}
	}
	if e.Action != "fail" {
		fmt.Fprintln(t.out, last)
		return
	}
	for _, one := range p.tests {
		output := one.output.String()
		if one == whole || one.passed && !strings.Contains(output, race) {
			continue
		}
		for line := range strings.Lines(output) {
			if !marks(line) {
				fmt.Fprint(t.out, line)
			}
		}
	}
	fmt.Fprint(t.out, whole.output.String())
}

// marks reports whether a line says only which test runs.
func marks(line string) bool {
	word, is := strings.CutPrefix(line, "=== ")
	word, _, _ = strings.Cut(word, " ")
	return is && slices.Contains([]string{"RUN", "PAUSE", "CONT", "NAME"}, word)
}

// slowest is how many tests the report names, and brief is how long a package may take, in seconds, that it does not name.
const (
	slowest = 10
	brief   = 1
)

// report prints the time of each package and of the slowest tests without subtests.
func (t *tally) report() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.running {
		fmt.Fprintf(t.out, "FAIL\t%s\tits tests did not end\n", key.name)
	}
	slices.SortFunc(t.packages, longestFirst)
	slices.SortFunc(t.tests, longestFirst)
	long := slices.DeleteFunc(t.packages, func(p took) bool { return p.seconds < brief })
	t.table("packages", long)
	t.table("slowest tests", t.tests[:min(len(t.tests), slowest)])
	if t.kept > 0 {
		fmt.Fprintf(t.out, "\nresults that were kept, because nothing that they depend on has changed: %d; go clean -testcache drops them\n", t.kept)
	}
}

func (t *tally) table(title string, rows []took) {
	fmt.Fprintf(t.out, "\nseconds  %s\n", title)
	for _, r := range rows {
		fmt.Fprintf(t.out, "%7.1f  %s\n", r.seconds, r.name)
	}
}

// longestFirst sorts by time.
func longestFirst(a, b took) int {
	return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.name, b.name))
}
