package main

import (
	"bytes"
	_ "embed"
	"errors"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// repositoryURL is where source code is shown.
const repositoryURL = "https://github.com/trimtab-dev/trimtab"

// first is the document that becomes index.html.
const first = "README.md"

// layout is what all pages have in common.
//
//go:embed layout.html
var layout string

//go:embed style.css
var style []byte

// site is what is rendered.
type site struct {
	repository fs.FS
	revision   string
	// documents are all Markdown files of the repository that a page may link to, by path; those with a page have a file.
	documents map[string]*document
	// pictures are the paths of what pages show.
	pictures map[string]bool
	findings []error
}

// render returns the files of the site by path, or an error for each link that leads nowhere.
func render(repository fs.FS, revision string) (map[string][]byte, error) {
	s := &site{repository: repository, revision: revision, documents: map[string]*document{}, pictures: map[string]bool{}}
	if err := s.load(); err != nil {
		return nil, err
	}
	shell, err := template.New("layout").Parse(layout)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"style.css": style}
	for _, d := range s.pages() {
		s.resolve(d)
		body, err := d.html()
		if err != nil {
			return nil, err
		}
		var page bytes.Buffer
		if err := shell.Execute(&page, s.view(d.file, d.title, body)); err != nil {
			return nil, err
		}
		files[d.file] = page.Bytes()
	}
	for name := range s.pictures {
		if files[name], err = fs.ReadFile(repository, name); err != nil {
			return nil, err
		}
	}
	var contents bytes.Buffer
	if err := shell.Execute(&contents, s.contents()); err != nil {
		return nil, err
	}
	files[contentsFile] = contents.Bytes()
	return files, errors.Join(s.findings...)
}

// load reads the documents at the root and in docs, which become pages, and those in design, which are linked to.
func (s *site) load() error {
	for _, pattern := range []string{"*.md", "docs/*.md", "design/*.md"} {
		names, err := fs.Glob(s.repository, pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			source, err := fs.ReadFile(s.repository, name)
			if err != nil {
				return err
			}
			d := parse(name, source)
			switch {
			case name == first:
				d.file = "index.html"
			case path.Dir(name) != "design":
				d.file = strings.TrimSuffix(name, ".md") + ".html"
			}
			s.documents[name] = d
		}
	}
	if s.documents[first] == nil {
		return errors.New("there is no " + first + "; run this at the root of the repository")
	}
	return nil
}

// pages returns the documents with a page: the first one, and then by title.
func (s *site) pages() []*document {
	pages := slices.DeleteFunc(slices.Collect(maps.Values(s.documents)), func(d *document) bool { return d.file == "" })
	slices.SortFunc(pages, func(a, b *document) int {
		if a.path == first || b.path == first {
			return map[bool]int{true: -1, false: 1}[a.path == first]
		}
		return strings.Compare(strings.ToLower(a.title), strings.ToLower(b.title))
	})
	return pages
}

// view is what the layout shows.
type view struct {
	Title string
	// Root is the way from the page to the folder of the site.
	Root  string
	Pages []link
	Body  template.HTML
}

type link struct {
	Title, File string
	Current     bool
}

func (s *site) view(file, title string, body []byte) view {
	v := view{Title: title, Root: strings.Repeat("../", strings.Count(file, "/")), Body: template.HTML(body)} //nolint:gosec // documents of this repository
	for _, d := range s.pages() {
		v.Pages = append(v.Pages, link{d.title, d.file, d.file == file})
	}
	v.Pages = append(v.Pages, link{contentsTitle, contentsFile, contentsFile == file})
	return v
}

const (
	contentsFile  = "contents.html"
	contentsTitle = "All headings"
)

// contents is a page with the headings of all pages, in which a reader finds a word with the browser's own search.
func (s *site) contents() view {
	var b strings.Builder
	b.WriteString("<h1>" + contentsTitle + "</h1>\n")
	for _, d := range s.pages() {
		b.WriteString("<h2><a href=\"" + d.file + "\">" + template.HTMLEscapeString(d.title) + "</a></h2>\n<ul>\n")
		for _, h := range d.headings {
			if h.level > 1 {
				b.WriteString("<li><a href=\"" + d.file + "#" + h.id + "\">" + template.HTMLEscapeString(h.text) + "</a></li>\n")
			}
		}
		b.WriteString("</ul>\n")
	}
	return s.view(contentsFile, contentsTitle, []byte(b.String()))
}
