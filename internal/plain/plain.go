// Package plain is the door through which texts from outside come: what vendors, drivers and
// servers say, on its way to status, events, logs and traces. Beyond it a text is valid UTF-8,
// of a length that Kubernetes takes, free of credentials as far as their usual forms go, and
// the same whenever the same thing happens.
package plain

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hidden stands in for what was cut out.
const Hidden = "(sensitive)"

const (
	// Longest is how many bytes of a text are kept. Kubernetes takes no more in an event, and
	// a condition and its event are to say the same.
	Longest = 1024
	// longestReason is what an event takes.
	longestReason = 128
	// rounds bounds how often a text is gone through: cutting may put together what has to be
	// cut again.
	rounds = 8
)

// Text is s as a sentence for people: one line, at most [Longest] bytes, safe, and without
// what differs from one occurrence of an event to the next.
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

// Line is s in one safe line of at most [Longest] bytes: for sentences of our own, into which
// texts from outside were put, and which mean the times and numbers in them.
func Line(s string) string {
	return Clip(Safe(oneLine(s)), Longest)
}

// Error is [Text] of an error; nothing of nil.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Text(err.Error())
}

// Safe is s as valid UTF-8 without credentials. Lines and length stay.
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

// Clip shortens s to at most limit bytes, between runes; an ellipsis tells.
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

// accepted is what the API server takes for a reason.
var accepted = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// Reason makes of s a reason that the API server takes, "Unknown" if nothing of it can be
// kept, so that a slip in a reason never costs the whole status.
func Reason(s string) string {
	if len(s) <= longestReason && accepted.MatchString(s) {
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

// printable replaces what no text for people holds: bytes that are no UTF-8, control characters
// but for white space, and marks that change the direction of what is read.
func printable(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// What differs from one occurrence of an error to the next, and would make a status that
// never rests.
var (
	localAddress = regexp.MustCompile(`[\w.:\[\]%-]+:\d+->`)
	requestID    = regexp.MustCompile(`(?i)[\s,;]*[(\[]?\b(?:x-)?(?:amzn?-|ms-)?(?:request|req|trace|correlation|operation)[-_ ]?id\b["']?\s*[:=]?\s*["']?[\w.:/+-]*\d[\w.:/+-]*["']?[)\]]?`)
	pointer      = regexp.MustCompile(`\b0x[0-9a-f]{6,}\b`)
	timestamp    = regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?`)
)

// oneLine is s with single spaces between words. Most texts are like that already.
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

// steady is s in one line and without such parts.
func steady(s string) string {
	s = oneLine(s)
	if strings.ContainsAny(s, "0123456789") { // all of them have digits, and most texts none
		s = replaceIf(s, "->", localAddress, "")
		if named(s) {
			s = requestID.ReplaceAllString(s, "")
		}
		s = replaceIf(s, "0x", pointer, "(address)")
		s = replaceIf(s, "-", timestamp, "(time)")
	}
	return strings.TrimRight(strings.TrimSpace(s), ".;,: ")
}

// replaceIf replaces what matches, which always has part in it.
func replaceIf(s, part string, what *regexp.Regexp, with string) string {
	if !strings.Contains(s, part) {
		return s
	}
	return what.ReplaceAllString(s, with)
}

// named reports whether s has the letters "id" in it, as every request id has.
func named(s string) bool {
	return strings.Contains(s, "id") || strings.Contains(s, "ID") || strings.Contains(s, "Id") || strings.Contains(s, "iD")
}
