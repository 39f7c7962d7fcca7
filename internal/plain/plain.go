// Package plain prepares texts of external APIs, drivers and servers for status, events, logs and
// traces. The results are valid UTF-8, of a length that Kubernetes accepts, without credentials in
// their usual forms, and the same whenever the same error occurs.
package plain

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hidden replaces what was removed.
const Hidden = "(sensitive)"

const (
	// Longest is the maximum length of a text, in bytes. It is the limit of Kubernetes for events,
	// and a condition should say the same as its event.
	Longest = 1024
	// longestReason is the limit of Kubernetes for the reason of an event.
	longestReason = 128
	// rounds limits how often a text is processed: removing a part can create another part that
	// must be removed.
	rounds = 8
)

// Text returns s as a sentence for people: one line of at most [Longest] bytes, without credentials
// and without parts that differ each time an error occurs.
func Text(s string) string {
	s = Safe(s)
	for range rounds {
		next := Safe(Clip(steady(s), Longest))
		if next == s {
			break
		}
		s = next
	}
	return Clip(s, Longest)
}

// Line returns s as one line of at most [Longest] bytes, without credentials. It is for trimtab's own
// sentences that quote other texts; their times and numbers are kept.
func Line(s string) string {
	return Clip(Safe(oneLine(s)), Longest)
}

// Error returns [Text] of the error, or an empty string if err is nil.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Text(err.Error())
}

// Safe returns s as valid UTF-8 without credentials. It keeps lines and length.
func Safe(s string) string {
	s = printable(s)
	if !suspect(s) {
		return s
	}
	for range rounds {
		next := hide(s)
		if next == s {
			break
		}
		s = next
	}
	return s
}

// Clip truncates s to at most limit bytes, between runes, ending with an ellipsis.
func Clip(s string, limit int) string {
	const more = " …"
	if len(s) <= limit {
		return s
	}
	if limit <= len(more) {
		return ""
	}
	end := limit - len(more)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.TrimRight(s[:end], " ") + more
}

// accepted reports whether the API server accepts s as a reason:
// [A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?
func accepted(s string) bool {
	if s == "" || len(s) > longestReason {
		return false
	}
	last := byte(':')
	for i := range len(s) {
		last = s[i]
		letter := 'a' <= last|0x20 && last|0x20 <= 'z'
		inner := '0' <= last && last <= '9' || last == '_' || last == ',' || last == ':'
		if !letter && (i == 0 || !inner) {
			return false
		}
	}
	return last != ',' && last != ':'
}

// Reason turns s into a reason that the API server accepts, or "Unknown" if nothing of s can be kept,
// so that an invalid reason never prevents a status from being written.
func Reason(s string) string {
	if accepted(s) {
		return s
	}
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	r := strings.TrimLeft(b.String(), "0123456789")
	if r == "" {
		return "Unknown"
	}
	return r[:min(len(r), longestReason)]
}

// printable replaces bytes that are not valid UTF-8, control characters other than white space, and
// characters that change the direction of text.
func printable(s string) string {
	if ordinary(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// ordinary reports whether s consists of printable ASCII, as most texts do.
func ordinary(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// These parts differ each time an error occurs and would cause a status write in every pass.
var (
	localAddress = regexp.MustCompile(`[\w.:\[\]%-]+:\d+->`)
	requestID    = regexp.MustCompile(`(?i)[\s,;]*[(\[]?\b(?:x-)?(?:amzn?-|ms-)?(?:request|req|trace|correlation|operation)[-_ ]?id\b["']?\s*[:=]?\s*["']?[\w.:/+-]*\d[\w.:/+-]*["']?[)\]]?`)
	pointer      = regexp.MustCompile(`\b0x[0-9a-f]{6,}\b`)
	timestamp    = regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?`)
)

// oneLine returns s with single spaces between words. Most texts already have that form.
func oneLine(s string) string {
	space := true // before s
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c < ' ' || c == ' ' && space {
			return strings.Join(strings.Fields(s), " ")
		}
		space = s[i] == ' '
	}
	if space {
		return strings.TrimRight(s, " ")
	}
	return s
}

// steady returns s on one line and without such parts.
func steady(s string) string {
	s = oneLine(s)
	if strings.ContainsAny(s, "0123456789") { // all of these parts contain digits, and most texts do not
		s = replaceIf(s, "->", localAddress, "")
		if named(s) {
			s = requestID.ReplaceAllString(s, "")
		}
		s = replaceIf(s, "0x", pointer, "(address)")
		if strings.Contains(s, ":") { // unlike in names, which often contain digits and dashes
			s = replaceIf(s, "-", timestamp, "(time)")
		}
	}
	return strings.TrimRight(strings.TrimSpace(s), ".;,: ")
}

// replaceIf replaces matches of a pattern. Every match contains part.
func replaceIf(s, part string, what *regexp.Regexp, with string) string {
	if !strings.Contains(s, part) {
		return s
	}
	return what.ReplaceAllString(s, with)
}

// named reports whether s contains "id", as every request id does.
func named(s string) bool {
	return strings.Contains(s, "id") || strings.Contains(s, "ID") || strings.Contains(s, "Id") || strings.Contains(s, "iD")
}
