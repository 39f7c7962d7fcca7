package arch

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// tree is a repository, parsed: all modules, whatever their build tags.
type tree struct {
	modules  []module
	work     *modfile.WorkFile
	packages []pkg
	// documents are the Markdown files by path.
	documents map[string]string
	makefile  string
	// paths are all files.
	paths []string
	fset  *token.FileSet
}

type module struct {
	// dir is the module's folder, "." for the root module.
	dir string
	mod *modfile.File
}

// pkg is one folder of Go files.
type pkg struct {
	dir    string
	path   string
	module module
	files  []file
}

type file struct {
	path   string
	syntax *ast.File
	lines  int
	test   bool
}

// load parses the repository in fsys, but for what is in testdata and hidden folders.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{documents: map[string]string{}, fset: token.NewFileSet()}
	folders := map[string][]file{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		t.paths = append(t.paths, name)
		if slices.Contains(strings.Split(name, "/"), "testdata") {
			return nil
		}
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		return t.add(name, content, folders)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(t.modules, func(a, b module) int { return cmp.Compare(a.dir, b.dir) })
	for dir, files := range folders {
		m := t.moduleOf(dir)
		t.packages = append(t.packages, pkg{dir: dir, path: importPath(m, dir), module: m, files: files})
	}
	slices.SortFunc(t.packages, func(a, b pkg) int { return cmp.Compare(a.path, b.path) })
	return t, nil
}

func (t *tree) add(name string, content []byte, folders map[string][]file) (err error) {
	switch {
	case path.Base(name) == "go.mod":
		m := module{dir: path.Dir(name)}
		m.mod, err = modfile.Parse(name, content, nil)
		t.modules = append(t.modules, m)
	case name == "go.work":
		t.work, err = modfile.ParseWork(name, content, nil)
	case name == "Makefile":
		t.makefile = string(content)
	case path.Ext(name) == ".md":
		t.documents[name] = string(content)
	case path.Ext(name) == ".go":
		f := file{path: name, test: strings.HasSuffix(name, "_test.go"), lines: bytes.Count(content, []byte("\n"))}
		f.syntax, err = parser.ParseFile(t.fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
		folders[path.Dir(name)] = append(folders[path.Dir(name)], f)
	}
	return err
}

// moduleOf returns the innermost module that holds dir.
func (t *tree) moduleOf(dir string) module {
	var in module
	for _, m := range t.modules {
		if m.dir == "." || dir == m.dir || strings.HasPrefix(dir, m.dir+"/") {
			if len(m.dir) >= len(in.dir) {
				in = m
			}
		}
	}
	return in
}

func importPath(m module, dir string) string {
	rel := strings.TrimPrefix(strings.TrimPrefix(dir, m.dir), "/")
	if m.dir == "." {
		rel = dir
	}
	return path.Join(m.mod.Module.Mod.Path, rel)
}

// root is the module path of the repository's root module.
func (t *tree) root() string {
	for _, m := range t.modules {
		if m.dir == "." {
			return m.mod.Module.Mod.Path
		}
	}
	return ""
}

// ours tells whether an import path belongs to this repository and returns its folder.
func (t *tree) ours(importPath string) (dir string, ok bool) {
	if importPath == t.root() {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.root()+"/")
}

// product returns the files that are neither tests nor generated.
func (p pkg) product() []file {
	return slices.DeleteFunc(slices.Clone(p.files), func(f file) bool { return f.test || ast.IsGenerated(f.syntax) })
}

// imports returns the import paths of a file with where they stand.
func (f file) imports() map[string]token.Pos {
	all := map[string]token.Pos{}
	for _, spec := range f.syntax.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err == nil {
			all[name] = spec.Pos()
		}
	}
	return all
}

// at makes a finding that names its place.
func (t *tree) at(pos token.Pos, format string, args ...any) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...))
}
