package helm

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Errors of Helm and of its parsers take several lines, and some name no file or the line of a document. These functions
// make sentences of them that begin with a file and a line in it, and then say what is wrong.

// longest is how many bytes a sentence has at most. That of templates that include each other without an end has
// hundreds of thousands.
const longest = 2000

// oneLine returns an error of Helm on one line.
func oneLine(err error) error {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	text := strings.Join(lines, " ")
	text = regexp.MustCompile(`^(?:parse|execution) error at \(([^)]*)\): `).ReplaceAllString(text, "$1: ")
	text = regexp.MustCompile(`^(?:template: )?(\S+:\d+:\d+):? executing "\S+" at `).ReplaceAllString(text, "$1: ")
	text = regexp.MustCompile(`^cannot load (\S+): `).ReplaceAllString(text, "$1: ")
	for _, noise := range []string{
		"cannot unmarshal yaml document: ", "error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ",
	} {
		text = strings.ReplaceAll(text, noise, "")
	}
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest/2], "") + " ... " + strings.ToValidUTF8(text[len(text)-longest/2:], "")
	}
	return errors.New(text)
}

// quoted is a value in a message about a schema.
var quoted = regexp.MustCompile(`(?s)(- at '[^']*': )'.*?' (does not match pattern|is not valid)`)

// discreet returns the error of a schema on one line, without values, which may be secret.
func discreet(err error) error {
	return oneLine(errors.New(quoted.ReplaceAllString(err.Error(), "${1}the value $2")))
}

// undecoded says that a document of a file could not be decoded. The parser counts the lines of the document.
func undecoded(files map[string]string, file, document string, err error) error {
	text := strings.TrimPrefix(oneLine(err).Error(), "yaml: ")
	if text != oneLine(err).Error() {
		text = "it is no YAML: " + text
	}
	line := lineOf(files[file], document)
	if m := regexp.MustCompile(`line (\d+): `).FindStringSubmatch(text); m != nil && line > 0 {
		n, _ := strconv.Atoi(m[1]) // it is digits
		line, text = line+n-1, strings.Replace(text, m[0], "", 1)
	}
	if line == 0 {
		return fmt.Errorf("%s: %s", file, text)
	}
	return fmt.Errorf("%s:%d: %s", file, line, text)
}

// lineOf returns the line of a file at which a document begins, or 0 if it is not in there.
func lineOf(file, document string) int {
	before, _, found := strings.Cut(file, strings.TrimSpace(document))
	if !found {
		return 0
	}
	return strings.Count(before, "\n") + 1
}
