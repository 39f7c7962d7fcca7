// Package steps shows what a command does: a line for each step, with what came of it and
// how long it took. On a terminal the line of a step that is under way is rewritten.
//
// A [Printer] begins a [Step]; what happened is also kept as [Result] values, for programs.
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

// Result is what came of a step.
type Result struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Seconds float64 `json:"seconds"`
	// Details are what a person reads after the name.
	Details []string `json:"details,omitempty"`
	// Error is empty when OK.
	Error string `json:"error,omitempty"`
}

// Printer writes steps. Its methods may be called by several goroutines; lines do not mix.
type Printer struct {
	out      io.Writer
	terminal bool
	color    bool

	mu       sync.Mutex
	failed   func(error)
	results  []Result
	underway string // the line that the next one replaces
}

// New makes a Printer that writes for people to out.
func New(out io.Writer) *Printer {
	terminal := controlplane.IsTerminal(out)
	return &Printer{out: out, terminal: terminal, color: terminal && os.Getenv("NO_COLOR") == "", failed: func(error) {}}
}

// OnFailure has f called when something could not be written, as when nobody reads any more.
// It may be called more than once, and must not write itself.
func (p *Printer) OnFailure(f func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = f
}

// write is called with the lock held.
func (p *Printer) write(format string, args ...any) {
	if _, err := fmt.Fprintf(p.out, format, args...); err != nil {
		p.failed(err)
	}
}

// Results are the steps that have ended, in the order of their ends.
func (p *Printer) Results() []Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.results)
}

// Line writes a line of its own.
func (p *Printer) Line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replace("")
	p.write(format+"\n", args...)
}

// replace shows line in the place of the one that is under way; empty shows none. The
// caller holds the lock.
func (p *Printer) replace(line string) {
	if !p.terminal || line == p.underway {
		return
	}
	p.write("\r\033[K%s", line)
	p.underway = line
}

// Run shows f as a step. What f returns goes into the step and is returned.
func (p *Printer) Run(name string, f func(*Step) error) error {
	s := p.Begin(name)
	if err := f(s); err != nil {
		s.Fail(err)
		return err
	}
	s.Done()
	return nil
}

// Begin begins a step, which has to be ended by [Step.Done] or [Step.Fail].
func (p *Printer) Begin(name string) *Step {
	s := &Step{p: p, name: name, began: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.show("")
	return s
}

// Step is something that is being done.
type Step struct {
	p       *Printer
	name    string
	began   time.Time
	details []string
	noted   time.Time
	ended   bool
}

// noteEvery is how often a note becomes a line where lines cannot be rewritten.
const noteEvery = 10 * time.Second

// Note says how far the step is. On a terminal it replaces the note before; elsewhere it
// is written at most every ten seconds.
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

// nameWidth makes the columns of most steps meet.
const nameWidth = 22

// lineWidth keeps a line that is rewritten on one row of any terminal.
const lineWidth = 79

// show rewrites the line of a step under way. The caller holds the lock.
func (s *Step) show(note string) {
	line := strings.TrimRight(fmt.Sprintf("  … %-*s %s", nameWidth, s.name, note), " ")
	if r := []rune(line); len(r) > lineWidth {
		line = string(r[:lineWidth-1]) + "…"
	}
	s.p.replace(line)
}

// Detail adds to what is shown after the name when the step ends.
func (s *Step) Detail(format string, args ...any) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.details = append(s.details, fmt.Sprintf(format, args...))
}

// Done ends the step as it should.
func (s *Step) Done() { s.end("✔", "32", nil) }

// Fail ends the step as it should not. The error goes into the result; to show it is up to
// whoever ends the command. A step ends once: what comes later is ignored.
func (s *Step) Fail(err error) { s.end("✘", "31", err) }

func (s *Step) end(mark, color string, err error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
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

// Seconds is a duration as people read it: "0.3s", "12.0s", "5m2s".
func Seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
