// Package report tells people what an exploration found.
package report

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// Input is what is told about one schedule that broke something.
type Input struct {
	// Test is the name of the test function, for the command to replay: "TestDatabase". Package
	// is the import path to find it at; empty means the folder that one is in.
	Test, Package string
	// Token is the replay token.
	Token string
	// Run is the run that broke something, Undisturbed the one that it was compared with; nil if
	// there is none.
	Run, Undisturbed *history.Run
	// Violations are what it broke, the most telling first; at least one.
	Violations []history.Violation
	// AtRest is set for a run in which a user comes when all is quiet.
	AtRest bool
	// Unended is set for a run that did not come to its end.
	Unended bool
	// Whole shows all calls rather than those that matter.
	Whole bool
}

const (
	columns = 100
	height  = 44 // lines before the command, about
	others  = 3  // violations besides the first
	noises  = 10 // the same, of what is done at rest
)

// Text says what is wrong, which schedule leads there, and how to see it again: at most about 50 lines,
// unless the whole run is shown. Sentences have 100 columns; requests and fields are not cut, bodies and long lines of a state are.
func Text(in Input) string {
	var b strings.Builder
	for i, v := range in.Violations {
		if i == 0 {
			b.WriteString(Wrapped(said(v), "  "))
			continue
		}
		if i > others && (v.Invariant != "I5" || i >= noises) {
			fmt.Fprintf(&b, "  and %d more\n", len(in.Violations)-i)
			break
		}
		b.WriteString(Wrapped("  also: "+said(v), "    "))
	}
	b.WriteByte('\n')
	b.WriteString(schedule(in))
	b.WriteString(details(in, height-strings.Count(b.String(), "\n")))
	b.WriteString("\n" + command(in) + "\n")
	return b.String()
}

// said is a violation in one sentence.
func said(v history.Violation) string {
	if v.Title == "" {
		return v.Message + " (" + v.Invariant + ")"
	}
	return fmt.Sprintf("%s (%s, %s)", v.Message, v.Invariant, v.Title)
}

// details shows what the first violation adds to its sentence, and how the state differs from that of
// the run that it is compared with, in about n lines.
func details(in Input, n int) string {
	var b strings.Builder
	all := in.Violations
	if len(all) == 0 {
		return ""
	}
	if first := all[0]; first.Detail != "" && first.Invariant != "I1" {
		b.WriteString(excerpt("more of it:", first.Detail, min(n, 5)))
	}
	for _, v := range all {
		if v.Detail != "" && v.Invariant == "I1" {
			n -= strings.Count(b.String(), "\n") + 2
			b.WriteString(excerpt("the state, where it differs ("+legend(in)+"):", v.Detail, max(n, 6)))
			break
		}
	}
	return b.String()
}

// legend says which of two states the signs are about.
func legend(in Input) string {
	if in.Undisturbed == nil || in.Undisturbed.Title == "" {
		return "- " + history.Undisturbed + ", + with it"
	}
	return "- " + in.Undisturbed.Title + ", + here"
}

// excerpt shows the first n lines of a text.
func excerpt(title, text string, n int) string {
	b := "\n" + title + "\n"
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if i == n && len(lines) > n+1 {
			return b + fmt.Sprintf("  ... %d more lines\n", len(lines)-i)
		}
		b += cut("  "+strings.ReplaceAll(line, "\t", "    "), 2*columns) + "\n"
	}
	return b
}

// command replays a schedule.
func command(in Input) string {
	parts := strings.Split(in.Test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	words := []string{"go test"}
	if in.Package != "" { // before the flags: go test takes what follows one that it does not know for its value
		words = append(words, shell(in.Package))
	}
	return "replay: " + strings.Join(append(words, "-run", quoted(strings.Join(parts, "/")), "-fault.replay="+shell(in.Token)), " ")
}

// shell quotes a word of a command if it has to be.
func shell(word string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/@+-_.:=,", r) || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return quoted(word)
	}
	return word
}

func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// cut shortens a line to n columns.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Wrapped breaks a sentence into lines, the later ones indented.
func Wrapped(s, indent string) string { return wrappedIn(s, indent, columns) }

// wrappedIn is like Wrapped, for another width.
func wrappedIn(s, indent string, width int) string {
	var b strings.Builder
	line := ""
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = s[:len(s)-len(strings.TrimLeft(s, " "))] + word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			b.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
	}
	return b.String() + line + "\n"
}
