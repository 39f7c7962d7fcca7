package arch

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// undocumented finds exported symbols without a comment, but in samples, which are read
// whole and imported by nobody.
func undocumented(t *tree) []string {
	var findings []string
	for _, p := range t.packages {
		if top(p.dir) == "samples" {
			continue
		}
		for _, f := range p.product() {
			for _, d := range f.syntax.Decls {
				for _, name := range undocumentedIn(d) {
					findings = append(findings, t.at(name.Pos(), "%s has no comment", name.Name))
				}
			}
		}
	}
	return findings
}

func undocumentedIn(d ast.Decl) []*ast.Ident {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		return undocumentedSpecs(d)
	}
	return nil
}

// undocumentedSpecs looks through one declaration of types, constants or variables. The
// comment of a group speaks for its members, and one that names several for all of those.
func undocumentedSpecs(d *ast.GenDecl) []*ast.Ident {
	if d.Doc != nil {
		return nil
	}
	var missing []*ast.Ident
	above := ""
	for _, spec := range d.Specs {
		var names []*ast.Ident
		var own *ast.CommentGroup
		switch s := spec.(type) {
		case *ast.TypeSpec:
			names, own = []*ast.Ident{s.Name}, s.Doc
		case *ast.ValueSpec:
			names, own = s.Names, s.Doc
			if own == nil {
				own = s.Comment
			}
		}
		if own != nil {
			above = own.Text()
			continue
		}
		for _, name := range names {
			if name.IsExported() && !slices.Contains(words(above), name.Name) {
				missing = append(missing, name)
			}
		}
	}
	return missing
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n\t,.:;()[]", r) })
}

// exportedReceiver tells whether a function is no method, or that of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	return d.Recv == nil || rootOf(d.Recv.List[0].Type).IsExported()
}

// state finds package variables that hold state: those without a value, and those that a
// function assigns to, in whole or in part, or takes the address of. The comment
// //arch:state, followed by a reason, makes an exception.
func state(t *tree) []string {
	var findings []string
	for _, p := range t.packages {
		globals := resolve(t, p)
		for _, f := range p.product() {
			for _, d := range f.syntax.Decls {
				for _, v := range valueless(d) {
					findings = append(findings, t.at(v.Pos(), "%s waits for a value; keep state in a value that its user makes", v.Name))
				}
				for _, e := range targets(d) {
					if id := rootOf(e); globals[id] {
						findings = append(findings, t.at(e.Pos(), "changes the package variable %s; keep state in a value that its user makes", id.Name))
					}
				}
			}
		}
	}
	return findings
}

// resolve finds the identifiers that mean a variable of the package that has no exception.
func resolve(t *tree, p pkg) map[*ast.Ident]bool {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	var syntax []*ast.File
	excused := map[string]bool{}
	for _, f := range p.product() {
		if strings.HasSuffix(f.path, "_windows.go") {
			continue // its names stand in other files too
		}
		syntax = append(syntax, f.syntax)
		for _, d := range f.syntax.Decls {
			for _, v := range variables(d) {
				excused[v.name.Name] = excused[v.name.Name] || v.excused
			}
		}
	}
	// What is imported stays unknown, which is an error for each import and use of it.
	config := types.Config{Importer: nowhere{}, Error: func(error) {}}
	checked, _ := config.Check(p.path, t.fset, syntax, info)
	globals := map[*ast.Ident]bool{}
	for id, object := range info.Uses {
		if v, ok := object.(*types.Var); ok && v.Parent() == checked.Scope() && !excused[v.Name()] {
			globals[id] = true
		}
	}
	return globals
}

type nowhere struct{}

func (nowhere) Import(string) (*types.Package, error) { return nil, errors.New("not resolved") }

// variable is a package variable.
type variable struct {
	name     *ast.Ident
	hasValue bool
	excused  bool
}

// variables lists the package variables of a declaration.
func variables(d ast.Decl) []variable {
	g, ok := d.(*ast.GenDecl)
	if !ok || g.Tok != token.VAR {
		return nil
	}
	var all []variable
	for _, spec := range g.Specs {
		if v, ok := spec.(*ast.ValueSpec); ok {
			excused := excuses(g.Doc) || excuses(v.Doc) || excuses(v.Comment)
			for _, name := range v.Names {
				all = append(all, variable{name: name, hasValue: len(v.Values) > 0, excused: excused})
			}
		}
	}
	return all
}

// excuses tells comments with which a variable is not state of ours: it is filled when the
// program is built, or somebody gave a reason.
func excuses(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		for _, directive := range []string{"//go:embed ", "//go:linkname ", "//arch:state "} {
			if strings.HasPrefix(c.Text, directive) {
				return true
			}
		}
		return false
	})
}

// valueless returns the package variables that are declared without a value.
func valueless(d ast.Decl) []*ast.Ident {
	var names []*ast.Ident
	for _, v := range variables(d) {
		if !v.hasValue && !v.excused {
			names = append(names, v.name)
		}
	}
	return names
}

// targets lists what a declaration's code assigns to, counts up, or takes the address of.
func targets(d ast.Decl) []ast.Expr {
	var found []ast.Expr
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				found = append(found, n.Lhs...)
			}
		case *ast.IncDecStmt:
			found = append(found, n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				found = append(found, n.X)
			}
		}
		return true
	})
	return found
}

// rootOf returns the identifier that x.f, x[i], x[T, U] and *x begin with, or nil.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}
