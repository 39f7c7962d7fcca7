package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/internal/kindgen"
)

// surfaceFile lists, one by line, what a public package exports: what a change of it breaks or adds
// is seen in a review without reading the code.
const surfaceFile = "api.txt"

// modules are the folders of the modules that users import, from the root. Module test is not one.
func modules() []string { return []string{".", "devcluster", "kubesim"} }

// surfaces returns that list for each public package.
func surfaces(root string) (files, error) {
	lists := map[string][]string{}
	out := files{}
	for _, module := range modules() {
		err := kindgen.Walk(filepath.Join(root, module), func(name string) error {
			name = path.Join(module, name)
			dir, file := path.Split(name)
			dir = strings.TrimSuffix(dir, "/")
			switch {
			case file == surfaceFile:
				out[name] = nil // unless its package still is there
				return nil
			case path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || !public(dir):
				return nil
			}
			more, err := surface(filepath.Join(root, filepath.FromSlash(name)))
			lists[dir] = append(lists[dir], more...)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	for dir, lines := range lists {
		if lines != nil {
			slices.Sort(lines)
			out[dir+"/"+surfaceFile] = []byte(strings.Join(lines, "\n") + "\n")
		}
	}
	return out, nil
}

// surface lists what a file exports; nothing of commands and of the walk in the root package.
func surface(file string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil || parsed.Name.Name == "main" || parsed.Name.Name == "trimtab" {
		return nil, err
	}
	return exported(parsed), nil
}

// public reports whether users can import a package and have a reason to do so.
func public(dir string) bool {
	parts := strings.Split(dir, "/")
	return dir != "" && !slices.Contains(parts, "internal") && !slices.Contains(parts, "examples") && !slices.Contains([]string{"cmd", "samples"}, parts[0])
}

// exported lists what a file exports.
func exported(f *ast.File) []string {
	var out []string
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
				d.Doc, d.Body = nil, nil
				if d.Recv != nil {
					d.Recv.List[0].Names = nil
				}
				out = append(out, oneLine(d))
			}
		case *ast.GenDecl:
			out = append(out, exportedBy(d)...)
		}
	}
	return out
}

// receiver is the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func exportedBy(d *ast.GenDecl) []string {
	var out []string
	var kind ast.Expr // a constant without one takes that of the line above
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				out = append(out, typeLines(s)...)
			}
		case *ast.ValueSpec:
			if s.Type != nil || len(s.Values) > 0 {
				kind = s.Type
			}
			for _, name := range s.Names {
				if name.IsExported() {
					out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", d.Tok, name.Name, oneLine(kind))))
				}
			}
		}
	}
	return out
}

// typeLines are a type and the fields or methods that it shows.
func typeLines(s *ast.TypeSpec) []string {
	var members *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		members, t.Fields = t.Fields, &ast.FieldList{}
	case *ast.InterfaceType:
		if len(t.Methods.List) > 0 && len(t.Methods.List[0].Names) > 0 {
			members, t.Methods = t.Methods, &ast.FieldList{}
		}
	}
	s.Doc, s.Comment = nil, nil
	out := []string{"type " + strings.TrimSuffix(oneLine(s), " { }")}
	if members == nil {
		return out
	}
	for _, m := range members.List {
		if len(m.Names) == 0 {
			out = append(out, "type "+s.Name.Name+", embeds "+oneLine(m.Type))
		}
		for _, name := range m.Names {
			if name.IsExported() {
				out = append(out, strings.Replace("type "+s.Name.Name+", "+name.Name+" "+oneLine(m.Type), name.Name+" func(", name.Name+"(", interfaces(s)))
			}
		}
	}
	return out
}

// interfaces is 1 for an interface, whose members are written as methods, and 0 for a struct.
func interfaces(s *ast.TypeSpec) int {
	if _, ok := s.Type.(*ast.InterfaceType); ok {
		return 1
	}
	return 0
}

// oneLine is a piece of source in one line; nothing of nil.
func oneLine(node any) string {
	if e, ok := node.(ast.Expr); ok && e == nil || node == nil {
		return ""
	}
	var b strings.Builder
	if err := printer.Fprint(&b, token.NewFileSet(), node); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
