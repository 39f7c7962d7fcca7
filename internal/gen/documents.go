package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/internal/kindgen"
)

var (
	// cut is the comment above a fenced block that names the source of its content: a file,
	// or a region of a file after "#". "with OLD=NEW" replaces a text in it.
	cut = regexp.MustCompile(`^<!-- cut (\S+?)(?:#(\S+))?(?: with (\S+?)=(\S+))? -->$`)
	// fence opens or closes a fenced block.
	fence = regexp.MustCompile("^```(\\w*)")
	// border begins or ends a region of a source file.
	border = regexp.MustCompile(`^\s*(?://|#)\s*(end)?region: (\S+)\s*$`)
)

// documents returns the Markdown files of the root module, in which every block that is cut
// from a source file is up to date. A block of Go without a source is an error, because code in
// documents must be compiled and tested. Design records are exempt: they show code that was
// only considered.
func documents(root string) (files, error) {
	docs := files{}
	err := kindgen.Walk(root, func(name string) error {
		if path.Ext(name) != ".md" || strings.HasPrefix(name, "design/") {
			return nil
		}
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		filled, err := fill(string(content), func(file, region string) ([]string, error) {
			return excerpt(root, file, region)
		})
		if err != nil {
			return fmt.Errorf("%s:%w", name, err)
		}
		docs[name] = []byte(filled)
		return nil
	})
	return docs, err
}

// fill replaces each block of a document that follows a cut comment with what source returns.
func fill(doc string, source func(file, region string) ([]string, error)) (string, error) {
	var out []string
	lines := strings.Split(doc, "\n")
	for i := 0; i < len(lines); i++ {
		open := fence.FindStringSubmatch(lines[i])
		if open == nil {
			out = append(out, lines[i])
			continue
		}
		end := closing(lines, i)
		if end < 0 {
			return "", fmt.Errorf("%d: the block is not closed", i+1)
		}
		body, err := blockBody(lines, i, end, open[1], source)
		if err != nil {
			return "", fmt.Errorf("%d: %w", i+1, err)
		}
		out = append(append(append(out, lines[i]), body...), lines[end])
		i = end
	}
	return strings.Join(out, "\n"), nil
}

// blockBody returns the lines that belong between the fences at open and end.
func blockBody(lines []string, open, end int, language string, source func(file, region string) ([]string, error)) ([]string, error) {
	if open > 0 {
		if from := cut.FindStringSubmatch(lines[open-1]); from != nil {
			body, err := source(from[1], from[2])
			if from[3] != "" {
				for i := range body {
					body[i] = strings.ReplaceAll(body[i], from[3], from[4])
				}
			}
			return body, err
		}
	}
	if language == "go" {
		return nil, errors.New("a block of Go must be cut from a tested file: put <!-- cut FILE#REGION --> on the line above")
	}
	return lines[open+1 : end], nil
}

func closing(lines []string, open int) int {
	for i := open + 1; i < len(lines); i++ {
		if lines[i] == "```" {
			return i
		}
	}
	return -1
}

// excerpt returns the lines of a file, or of one region of it, without common indentation. The
// borders of regions are left out, and so are empty lines at the start, at the end, and before
// another empty line.
func excerpt(root, file, region string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	var lines []string
	inside, found := region == "", region == ""
	for line := range strings.SplitSeq(strings.TrimRight(string(content), "\n"), "\n") {
		b := border.FindStringSubmatch(line)
		switch {
		case b != nil && b[2] == region:
			inside, found = b[1] == "", true
		case b == nil && inside:
			lines = append(lines, line)
		}
	}
	if !found {
		return nil, fmt.Errorf("%s has no line \"region: %s\"", file, region)
	}
	lines = slices.CompactFunc(lines, func(a, b string) bool { return a == "" && b == "" })
	return dedent(trim(lines)), nil
}

// trim removes empty lines at both ends. Borders are surrounded by empty lines, because
// otherwise they would become part of a doc comment.
func trim(lines []string) []string {
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// dedent removes the tabs and spaces that all non-empty lines start with.
func dedent(lines []string) []string {
	common, first := "", true
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		indent := l[:len(l)-len(strings.TrimLeft(l, "\t "))]
		if first {
			common, first = indent, false
		}
		for !strings.HasPrefix(indent, common) {
			common = common[:len(common)-1]
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimPrefix(l, common)
	}
	return out
}
