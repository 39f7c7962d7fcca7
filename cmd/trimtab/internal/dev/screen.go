package dev

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

// screen shows lines, and on a terminal a table of objects below them, which is painted again after each change. It is safe
// for concurrent use.
type screen struct {
	out      io.Writer
	terminal bool
	width    func() int

	mu      sync.Mutex
	rows    map[string]row
	painted int // lines of the table that are on the terminal
}

// row is how an object is.
type row struct {
	name, state, message string
	ready                bool
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, terminal: controlplane.IsTerminal(out), rows: map[string]row{}, width: func() int { return usualWidth }}
	if f, is := out.(*os.File); is {
		s.width = func() int {
			if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
				return width
			}
			return usualWidth
		}
	}
	return s
}

// usualWidth is that of a terminal that does not say it.
const usualWidth = 80

// Write shows complete lines above the table.
func (s *screen) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(lines)
}

func (s *screen) write(lines []byte) (int, error) {
	if s.painted > 0 {
		fmt.Fprintf(s.out, "\033[%dA\033[J", s.painted)
		s.painted = 0
	}
	n, err := s.out.Write(lines)
	if table := s.table(); s.terminal && len(table) > 0 {
		fmt.Fprint(s.out, strings.Join(table, "\n")+"\n")
		s.painted = len(table)
	}
	return n, err
}

// show shows a line about an object, and how the object is now. Nil means that it is gone.
func (s *screen) show(key string, now *row, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now == nil {
		delete(s.rows, key)
	} else {
		s.rows[key] = *now
	}
	_, _ = s.write([]byte(line))
}

// clear removes the table.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.rows)
	_, _ = s.write(nil)
}

// mostRows is how many objects the table has: those that are not ready come first.
const mostRows = 12

// table returns the lines of the table. None is longer than a line of the terminal.
func (s *screen) table() []string {
	rows := slices.SortedFunc(maps.Values(s.rows), func(a, b row) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.name, b.name))
	})
	if len(rows) == 0 {
		return nil
	}
	width := s.width()
	lines := []string{strings.Repeat("─", min(width-1, usualWidth))}
	for i, r := range rows {
		if i == mostRows {
			lines = append(lines, fmt.Sprintf("  … and %d more", len(rows)-mostRows))
			break
		}
		lines = append(lines, cut(fmt.Sprintf("  %s %-28s %-12s %s", mark(r.ready), r.name, r.state, r.message), width-1))
	}
	return lines
}

func rank(r row) int {
	if r.ready {
		return 1
	}
	return 0
}

func mark(ready bool) string {
	if ready {
		return "✔"
	}
	return "…"
}

func cut(text string, most int) string {
	if r := []rune(text); len(r) > most && most > 0 {
		return string(r[:most-1]) + "…"
	}
	return text
}
