package steps

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// script is a command with a bit of everything.
func script(p *Printer) {
	p.Line("a command:")
	err := p.Run("first", func(s *Step) error {
		s.Detail("v%d", 1)
		s.Detail("here")
		<-time.After(1900 * time.Millisecond)
		return nil
	})
	second := p.Begin("second, much longer than the column")
	for i := range 24 {
		second.Note(fmt.Sprintf("%d of 24", i))
		<-time.After(time.Second)
	}
	second.Fail(errors.Join(err, errors.New("no luck")))
	second.Done()
	second.Note("ended long ago")
}

func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := New(&out)
		script(p)
		want := `a command:
  ✔ first                  v1   here   1.9s
  … second, much longer than the column  0 of 24
  … second, much longer than the column  10 of 24
  … second, much longer than the column  20 of 24
  ✘ second, much longer than the column 24.0s
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
		results := []Result{
			{Name: "first", OK: true, Seconds: 1.9, Details: []string{"v1", "here"}},
			{Name: "second, much longer than the column", Seconds: 24, Error: "no luck"},
		}
		if diff := cmp.Diff(results, p.Results()); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	})
}

// screen is what a terminal shows of a text that rewrites lines.
func screen(text string) string {
	return regexp.MustCompile(`[^\n]*\r\x1b\[K`).ReplaceAllString(text, "")
}

func TestTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := New(&out)
		p.terminal, p.color = true, true
		script(p)
		want := "a command:\n" +
			"  \033[32m✔\033[0m first                  v1   here   1.9s\n" +
			"  \033[31m✘\033[0m second, much longer than the column 24.0s\n"
		if diff := cmp.Diff(want, screen(out.String())); diff != "" {
			t.Errorf("screen in the end (-want +got):\n%s", diff)
		}
		if n := strings.Count(out.String(), "of 24"); n != 24 {
			t.Errorf("%d notes were shown, want each of 24", n)
		}
		third := p.Begin("third")
		third.Note(strings.Repeat("long ", 40))
		rows := strings.Split(out.String(), "\r\033[K")
		if last := []rune(rows[len(rows)-1]); len(last) != lineWidth {
			t.Errorf("the line under way has %d columns, want it cut to %d", len(last), lineWidth)
		}
	})
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		300 * time.Millisecond:    "0.3s",
		12 * time.Second:          "12.0s",
		302400 * time.Millisecond: "5m2s",
	} {
		if got := Seconds(d); got != want {
			t.Errorf("Seconds(%v) = %q, want %q", d, got, want)
		}
	}
}
