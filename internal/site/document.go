package main

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// document is a Markdown file.
type document struct {
	// path is that in the repository, and file that in the site, if it has a page there.
	path, file string
	title      string
	headings   []heading
	source     []byte
	root       ast.Node
}

type heading struct {
	level    int
	id, text string
}

// markdown is as GitHub shows it. Raw HTML is kept: the documents are ours.
func markdown() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
}

func parse(path string, source []byte) *document {
	d := &document{path: path, title: path, source: source, root: markdown().Parser().Parse(text.NewReader(source))}
	taken := map[string]int{}
	for _, n := range d.find(ast.KindHeading) {
		h := heading{level: n.(*ast.Heading).Level, text: d.words(n)}
		h.id = slug(h.text)
		if taken[h.id]++; taken[h.id] > 1 {
			h.id = fmt.Sprintf("%s-%d", h.id, taken[h.id]-1)
		}
		n.SetAttributeString("id", []byte(h.id))
		if len(d.headings) == 0 {
			d.title = h.text
		}
		d.headings = append(d.headings, h)
	}
	return d
}

// find returns the nodes of a kind, in their order.
func (d *document) find(kind ast.NodeKind) (found []ast.Node) {
	_ = ast.Walk(d.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // this function returns no error
		if entering && n.Kind() == kind {
			found = append(found, n)
		}
		return ast.WalkContinue, nil
	})
	return found
}

// words returns the text of a node without markup.
func (d *document) words(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Value(d.source))
			if c.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(c.Value)
		default:
			b.WriteString(d.words(c))
		}
	}
	return b.String()
}

// slug returns the anchor that GitHub gives a heading, so that links work there, too.
func slug(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

func (d *document) has(anchor string) bool {
	for _, h := range d.headings {
		if h.id == anchor {
			return true
		}
	}
	return false
}

// html returns the content of the page. What is wider than a small screen is scrolled by itself, also with the keyboard.
func (d *document) html() ([]byte, error) {
	var b bytes.Buffer
	if err := markdown().Renderer().Render(&b, d.source, d.root); err != nil {
		return nil, fmt.Errorf("render %s: %w", d.path, err)
	}
	wide := strings.NewReplacer("<table>", `<div class="wide" tabindex="0"><table>`, "</table>", "</table></div>", "<pre>", `<pre tabindex="0">`)
	return []byte(wide.Replace(b.String())), nil
}
