package docs

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// block is a fenced block of a page.
type block struct {
	line int
	// language is the first word after the fence. A "sh" block is run, each command of a
	// "console" block is run and its output compared, any other block is the content of a file.
	language string
	// mode is the second word: "second-terminal" or "after-ctrl-c".
	mode string
	// file is the name that the text before the block ends with, as in "`main.go`:".
	file string
	text []string
}

var (
	fence = regexp.MustCompile("^```(\\w*) ?(.*)$")
	named = regexp.MustCompile("`([^`]+)`:$")
)

// readPage returns the blocks of a Markdown page.
func readPage(t *testing.T, path string) []block {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var blocks []block
	var open *block
	before, number := "", 0
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		number++
		line := lines.Text()
		switch m := fence.FindStringSubmatch(line); {
		case open != nil && line == "```":
			blocks, open, before = append(blocks, *open), nil, ""
		case open != nil:
			open.text = append(open.text, line)
		case m != nil:
			open = &block{line: number, language: m[1], mode: m[2]}
			if name := named.FindStringSubmatch(before); name != nil {
				open.file = name[1]
			}
		case line != "" && !strings.HasPrefix(line, "<!--"):
			before = line
		}
	}
	if err := lines.Err(); err != nil || open != nil {
		t.Fatalf("%s: %v; a block is open at the end: %t", path, err, open != nil)
	}
	return blocks
}

// example is a command of a console block and the output that the page shows for it.
type example struct{ command, output string }

func (b block) examples() []example {
	var all []example
	for _, line := range b.text {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, example{command: command})
		} else if n := len(all); n > 0 {
			all[n-1].output += line + "\n"
		}
	}
	return all
}

// age matches the column AGE.
var age = regexp.MustCompile(`\b[0-9]+(m[0-9]+)?s\b`)

// alike removes what differs from run to run: ages, and the widths of columns.
func alike(output string) string {
	var all strings.Builder
	for line := range strings.Lines(output) {
		fmt.Fprintln(&all, strings.Join(strings.Fields(age.ReplaceAllString(line, "AGE")), " "))
	}
	return all.String()
}
