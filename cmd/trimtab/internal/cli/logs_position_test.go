package cli

import (
	"testing"
	"time"
)

// TestPosition: of lines that are read again, each is taken once, however many there are of it and in whatever order they come.
func TestPosition(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	line := func(after time.Duration, text string) stampedLine { return stampedLine{start.Add(after), text} }
	tests := map[string]struct {
		why           string
		first, second []stampedLine
		want          int // of the second
		since         time.Duration
	}{
		"nothing new":       {"all were taken", []stampedLine{line(0, "a"), line(1, "b")}, []stampedLine{line(0, "a"), line(1, "b")}, 0, -2 * time.Second},
		"the same moment":   {"it is another line", []stampedLine{line(0, "a")}, []stampedLine{line(0, "a"), line(0, "b")}, 1, -2 * time.Second},
		"the same line":     {"it was written three times", []stampedLine{line(0, "a"), line(0, "a")}, []stampedLine{line(0, "a"), line(0, "a"), line(0, "a")}, 1, -2 * time.Second},
		"an earlier time":   {"outputs overtake each other", []stampedLine{line(time.Second, "b")}, []stampedLine{line(0, "a"), line(time.Second, "b")}, 1, -time.Second},
		"the same, later":   {"it is another line", []stampedLine{line(0, "a"), line(time.Minute, "b")}, []stampedLine{line(time.Minute, "b"), line(time.Minute, "a")}, 1, 58 * time.Second},
		"nothing before":    {"all are new", nil, []stampedLine{line(0, "a"), line(0, "a")}, 2, 0},
		"no times at first": {"a server may put none", []stampedLine{{text: "a"}}, []stampedLine{{text: "a"}, {text: "a"}}, 1, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &position{}
			read := func(lines []stampedLine) (n int) {
				isNew := p.reading()
				for _, l := range lines {
					if isNew(l) {
						n++
					}
				}
				return n
			}
			if n := read(tt.first); n != len(tt.first) {
				t.Errorf("%d lines of the first reading are new, want all", n)
			}
			switch since := p.since(); {
			case tt.since == 0 && since != nil, tt.since != 0 && (since == nil || !since.Time.Equal(start.Add(tt.since))):
				t.Errorf("it is read again since %v, want %s after the start", since, tt.since)
			}
			if n := read(tt.second); n != tt.want {
				t.Errorf("%d lines of the second reading are new, want %d: %s", n, tt.want, tt.why)
			}
			if n := read(tt.second); n != 0 {
				t.Errorf("%d lines of the third reading are new, want none", n)
			}
		})
	}
	if got := split([]byte("2026-01-02T03:04:05.000000001Z {\"a\":1}\n")); got != line(1, "{\"a\":1}\n") {
		t.Errorf("split: %+v", got)
	}
	if got := split([]byte("{\"a\": 1}\n")); got != (stampedLine{text: "{\"a\": 1}\n"}) {
		t.Errorf("split without a time: %+v", got)
	}
}
