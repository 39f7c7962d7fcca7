package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// resolve makes the links of a page lead to pages of the site, and those to other files of the repository to where it is shown.
func (s *site) resolve(d *document) {
	for _, n := range d.find(ast.KindLink) {
		l := n.(*ast.Link)
		to, err := s.target(d, string(l.Destination))
		if err != nil {
			s.finding(d, "links to %s: %v", l.Destination, err)
		}
		l.Destination = []byte(to)
	}
	for _, n := range d.find(ast.KindImage) {
		i := n.(*ast.Image)
		name := path.Join(path.Dir(d.path), string(i.Destination))
		if info, err := fs.Stat(s.repository, name); err != nil || info.IsDir() {
			s.finding(d, "shows %s, which does not exist", i.Destination)
			continue
		}
		if d.words(i) == "" {
			s.finding(d, "shows %s without a text for those who do not see it", i.Destination)
		}
		s.pictures[name] = true
		i.Destination = []byte(relative(d.file, name))
	}
}

func (s *site) finding(d *document, format string, args ...any) {
	s.findings = append(s.findings, fmt.Errorf(d.path+": "+format, args...))
}

// target returns where a link of d leads.
func (s *site) target(d *document, link string) (string, error) {
	u, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	if u.IsAbs() || u.Host != "" {
		return link, nil
	}
	name := d.path
	if u.Path != "" {
		name = path.Join(path.Dir(d.path), u.Path)
	}
	other := s.documents[name]
	if other != nil && u.Fragment != "" && !other.has(u.Fragment) {
		return "", fmt.Errorf("%s has no heading #%s", name, u.Fragment)
	}
	fragment := ""
	if u.Fragment != "" {
		fragment = "#" + u.Fragment
	}
	switch {
	case other == d && fragment != "":
		return fragment, nil
	case other != nil && other.file != "":
		return relative(d.file, other.file) + fragment, nil
	}
	info, err := fs.Stat(s.repository, name)
	if err != nil {
		return "", fmt.Errorf("%s does not exist", name)
	}
	view := map[bool]string{true: "tree", false: "blob"}[info.IsDir()]
	return repositoryURL + "/" + view + "/" + s.revision + "/" + name + fragment, nil
}

// relative returns the way from one file of the site to another.
func relative(from, to string) string {
	way, err := filepath.Rel(filepath.FromSlash(path.Dir(from)), filepath.FromSlash(to))
	if err != nil { // not with two relative paths
		return to
	}
	return strings.ReplaceAll(way, string(filepath.Separator), "/")
}
