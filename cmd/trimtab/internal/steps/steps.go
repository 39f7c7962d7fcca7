// Package steps prints the progress of a command: one line for each step, with its result and
// how long it took. On a terminal, the line of a running step is updated in place.
//
// A [Printer] begins each [Step]. The results are also available as [Result] values.
package steps

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

// Result is the result of a step.
type Result struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Seconds float64 `json:"seconds"`
	// Details are printed after the name.
	Details []string `json:"details,omitempty"`
	// Error is empty if OK is true.
	Error string `json:"error,omitempty"`
}

// Printer prints steps. Its methods are safe for concurrent use; lines are never mixed.
type Printer struct {
	out      io.Writer
	terminal bool
	color    bool

	mu       sync.Mutex
	failed   func(error)
	results  []Result
	underway string // the line of the running step, which the next line replaces
}

// New returns a Printer that writes to out.
func New(out io.Writer) *Printer {
	terminal := controlplane.IsTerminal(out)
	return &Printer{out: out, terminal: terminal, color: terminal && os.Getenv("NO_COLOR") == "", failed: func(error) {}}
}

// OnFailure sets a function that is called when output cannot be written, for example because
// the reader of a pipe has gone. It may be called more than once. It must not use the Printer.
func (p *Printer) OnFailure(f func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = f
}

// write writes to out. The caller holds the lock.
func (p *Printer) write(format string, args ...any) {
	if _, err := fmt.Fprintf(p.out, format, args...); err != nil {
		p.failed(err)
	}
}

// Results returns the results of the steps that have ended, in the order in which they ended.
func (p *Printer) Results() []Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.results)
}

// Line prints a line that belongs to no step.
func (p *Printer) Line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replace("")
	p.write(format+"\n", args...)
}

// replace replaces the line of the running step; an empty line removes it. The caller holds
// the lock.
func (p *Printer) replace(line string) {
	if !p.terminal || line == p.underway {
		return
	}
	p.write("\r\033[K%s", line)
	p.underway = line
}

// Run runs f as a step and returns its error, which is also the result of the step.
func (p *Printer) Run(name string, f func(*Step) error) error {
	s := p.Begin(name)
	if err := f(s); err != nil {
		s.Fail(err)
		return err
	}
	s.Done()
	return nil
}

// Begin begins a step. The caller must end it with [Step.Done] or [Step.Fail].
func (p *Printer) Begin(name string) *Step {
	s := &Step{p: p, name: name, began: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.show("")
	return s
}

// Step is a running step.
type Step struct {
	p       *Printer
	name    string
	began   time.Time
	details []string
	noted   time.Time
	ended   bool
	waits   bool
}

// noteEvery is how often a note is printed where lines cannot be rewritten.
const noteEvery = 10 * time.Second

// Note reports the progress of the step. On a terminal it replaces the previous note;
// elsewhere it is printed at most every ten seconds.
func (s *Step) Note(note string) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.ended {
		return
	}
	if !s.p.terminal && time.Since(s.noted) >= noteEvery {
		s.p.write("  … %s  %s\n", s.name, note)
		s.noted = time.Now()
	}
	s.show(note)
}

// nameWidth is the width of the first column; longer names are rare.
const nameWidth = 22

// lineWidth is the maximum length of a line that is rewritten, so that it fits into one row of
// any terminal.
const lineWidth = 79

// show rewrites the line of the running step. The caller holds the lock.
func (s *Step) show(note string) {
	line := strings.TrimRight(fmt.Sprintf("  … %-*s %s", nameWidth, s.name, note), " ")
	if r := []rune(line); len(r) > lineWidth {
		line = string(r[:lineWidth-1]) + "…"
	}
	s.p.replace(line)
}

// Detail adds a text that is printed after the name when the step ends.
func (s *Step) Detail(format string, args ...any) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.details = append(s.details, fmt.Sprintf(format, args...))
}

// Waits has the step end without the sign of success: what it has started is in order, and waits for something.
func (s *Step) Waits() {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.waits = true
}

// Done ends the step as successful.
func (s *Step) Done() { s.end("✔", "32", nil) }

// Fail ends the step as failed. The error becomes part of the result but is not printed; that
// is up to the caller. Once a step has ended, further calls of Done and Fail have no effect.
func (s *Step) Fail(err error) { s.end("✘", "31", err) }

func (s *Step) end(mark, color string, err error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	if s.waits && err == nil {
		mark, color = "…", "33"
	}
	took := time.Since(s.began)
	r := Result{Name: s.name, OK: err == nil, Seconds: float64(took.Milliseconds()) / 1000, Details: s.details}
	if err != nil {
		r.Error = err.Error()
	}
	s.p.results = append(s.p.results, r)
	if s.p.color {
		mark = "\033[" + color + "m" + mark + "\033[0m"
	}
	s.p.replace("")
	columns := append(slices.Clone(s.details), Seconds(took))
	s.p.write("  %s %-*s %s\n", mark, nameWidth, s.name, strings.Join(columns, "   "))
}

// Seconds formats a duration for people: "0.3s", "12.0s", "5m2s".
func Seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
