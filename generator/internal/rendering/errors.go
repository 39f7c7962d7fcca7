package rendering

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Errors of templates and of parsers take several lines, and some name no file or the line of a document. These functions
// make sentences of them that begin with a file and a line in it, and then say what is wrong.

// longest is how many bytes a sentence has at most. That of templates that include each other without an end has
// hundreds of thousands.
const longest = 2000

// OneLine returns an error of a template or of a parser on one line. It begins with file and line if the error has them.
func OneLine(err error) error {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	text := strings.Join(lines, " ")
	text = regexp.MustCompile(`^(?:parse|execution) error at \(([^)]*)\): `).ReplaceAllString(text, "$1: ")
	text = regexp.MustCompile(`^(?:template: )?(\S+:\d+:\d+):? executing "\S+" at `).ReplaceAllString(text, "$1: ")
	text = regexp.MustCompile(`^template: (\S+:\d+): `).ReplaceAllString(text, "$1: ")
	text = regexp.MustCompile(`^cannot load (\S+): `).ReplaceAllString(text, "$1: ")
	for _, noise := range []string{
		"cannot unmarshal yaml document: ", "error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ",
	} {
		text = strings.ReplaceAll(text, noise, "")
	}
	text = regexp.MustCompile(`invalid map key: .*`).ReplaceAllString(text, "a key is no text") // it prints values
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest/2], "") + " ... " + strings.ToValidUTF8(text[len(text)-longest/2:], "")
	}
	return errors.New(text)
}

// Undecoded says that a document could not be decoded, which begins in a line of a file; 0 if that is not known. The parser
// counts the lines of the document.
func Undecoded(file string, line int, err error) error {
	message := strings.TrimPrefix(OneLine(err).Error(), "yaml: ")
	if message != OneLine(err).Error() {
		message = "it is no YAML: " + message
	}
	if m := regexp.MustCompile(`line (\d+): `).FindStringSubmatch(message); m != nil && line > 0 {
		n, _ := strconv.Atoi(m[1]) // it is digits
		line, message = line+n-1, strings.Replace(message, m[0], "", 1)
	}
	if line == 0 {
		return fmt.Errorf("%s: %s", file, message)
	}
	return fmt.Errorf("%s:%d: %s", file, line, message)
}

// LineOf returns the line of a file at which a document begins, or 0 if it is not in there.
func LineOf(file, document string) int {
	before, _, found := strings.Cut(file, strings.TrimSpace(document))
	if !found {
		return 0
	}
	return strings.Count(before, "\n") + 1
}
