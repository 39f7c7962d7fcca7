package fault

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// interval is after how much time a line says how far an exploration is.
	interval = 30 * time.Second
	// lineLength is how much of a finding a line shows.
	lineLength = 300
)

// part is a part of an exploration: a number of runs of one sort.
type part struct {
	what        string // "undisturbed runs"
	played, all int
	began       time.Time
}

// line says how far it is.
func (p *part) line(now time.Time, findings int) string {
	return fmt.Sprintf("playing %s: %d of %d played in %v, %s", p.what, p.played, p.all, now.Sub(p.began).Round(time.Second), plural(findings, "finding"))
}

// teller says on stderr how far an exploration is that takes long, and what it has found. It is safe for concurrent use.
type teller struct {
	scenario string
	out      io.Writer

	mu       sync.Mutex
	now      part
	findings int
	loud     bool     // it takes long: a line was written
	held     []string // what was found before the first line
}

// newTeller returns a teller who writes at once: the test's log may be seen at the end only.
func newTeller(scenario string) *teller { return &teller{scenario: scenario, out: os.Stderr} }

// start lets lines come from time to time, until stop is called.
func (t *teller) start() (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				t.tick(now)
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// tick writes how far it is.
func (t *teller) tick(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now.what != "" {
		t.write(t.now.line(now, t.findings))
	}
}

// begin notes that a part begins.
func (t *teller) begin(p part) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.began = time.Now()
	t.now = p
}

// did notes that a run of the present part was played.
func (t *teller) did() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.played++
}

// say writes a line.
func (t *teller) say(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write(text)
}

// count notes that a schedule broke something.
func (t *teller) count() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.findings++
}

// found writes what is wrong and how to see it again, if that was not written yet because the exploration does not take
// long until now, with the next line.
func (t *teller) found(f Finding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := f.Violations[0]
	message := strings.Join(strings.Fields(v.Message), " ")
	if utf8.RuneCountInString(message) > lineLength {
		message = string([]rune(message)[:lineLength-1]) + "…"
	}
	text := fmt.Sprintf("found: %s (%s); -fault.replay='%s'", message, v.Invariant, f.Token)
	if t.loud {
		t.write(text)
		return
	}
	t.held = append(t.held, text)
}

// write writes a line, and what was found before the first one. The caller holds the lock.
func (t *teller) write(text string) {
	for _, before := range t.held {
		t.line(before)
	}
	t.held, t.loud = nil, true
	t.line(text)
}

func (t *teller) line(text string) {
	_, _ = fmt.Fprintf(t.out, "fault: %s: %s\n", t.scenario, text) // nobody reads it then
}
