package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// writesStatus is the fact that a function writes the status of some of its parameters: who calls it writes that status.
// The receiver is parameter -1.
type writesStatus struct{ Params []int }

func (*writesStatus) AFact() {}

func (f *writesStatus) String() string {
	var all []string
	for _, p := range f.Params {
		all = append(all, strconv.Itoa(p))
	}
	return "writes the status of " + strings.Join(all, ",")
}

func statusOwner() rule {
	return rule{
		name: "statusowner",
		doc: "report writes of the status of a kind outside of its controller\n\n" +
			"The status is the report of one controller. A second writer undoes what the first one says, and readers cannot tell " +
			"whose word it is. Reported is a store to the status of a custom resource that was read, and Status().Update, Patch or " +
			"Apply of one, in a package that has no reconciler for the kind. A function that writes the status of its parameter is a " +
			"helper: what is reported is a call of it with such an object, in any package. The package of the kind, conversions and tests " +
			"may write. Way out: write a field of the spec or an annotation, and let the kind's own reconciler report on it.",
		facts: []analysis.Fact{new(writesStatus)},
		find: func(w *world) []finding {
			s := statusWriters{world: w, params: map[*types.Func][]int{}}
			for again := true; again; {
				again = false
				s.found = nil
				for _, d := range w.decls {
					again = s.look(d) || again
				}
			}
			for fn, params := range s.params {
				slices.Sort(params)
				w.pass.ExportObjectFact(fn, &writesStatus{Params: params})
			}
			return s.found
		},
	}
}

// statusWriters finds who writes statuses.
type statusWriters struct {
	*world
	params map[*types.Func][]int
	found  []finding
}

// look looks through a function and reports whether it has become a writer of a parameter's status.
func (s *statusWriters) look(d *ast.FuncDecl) (news bool) {
	fn := s.function(d)
	if strings.HasPrefix(strings.ToLower(fn.Name()), "convert") {
		return false
	}
	before := len(s.params[fn])
	for _, st := range s.stores(d.Body, "Status") {
		if !cleared(st) {
			s.write(d, st.at, st.obj, false, "changes the status of")
		}
	}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		if r := s.clientCall(n); r.status && r.verb != "Get" {
			s.write(d, n, r.obj, true, "writes the status of")
			return true
		}
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		callee := s.callee(call)
		for _, p := range s.writes(callee) {
			if arg := argument(call, p); arg != nil && s.below(arg, "Status") == nil {
				s.write(d, call, arg, false, "calls "+callee.Name()+", which changes the status of")
			}
		}
		return true
	})
	return len(s.params[fn]) > before
}

// cleared tells a status that is set to nothing, as before an object is created again.
func cleared(st store) bool {
	sel, is := st.path.(*ast.SelectorExpr)
	lit, empty := ast.Unparen(orNil(st.value)).(*ast.CompositeLit)
	return is && sel.Sel.Name == "Status" && empty && len(lit.Elts) == 0
}

func orNil(e ast.Expr) ast.Expr {
	if e == nil {
		return &ast.BadExpr{}
	}
	return e
}

// writes are the parameters of which a function writes the status.
func (s *statusWriters) writes(fn *types.Func) []int {
	if fn == nil {
		return nil
	}
	fn = fn.Origin()
	fact := &writesStatus{}
	if fn.Pkg() != s.pass.Pkg && s.pass.ImportObjectFact(fn, fact) {
		return fact.Params
	}
	return s.params[fn]
}

func argument(call *ast.CallExpr, param int) ast.Expr {
	if param < 0 {
		if sel, is := ast.Unparen(call.Fun).(*ast.SelectorExpr); is {
			return sel.X
		}
		return nil
	}
	if param >= len(call.Args) {
		return nil
	}
	arg := ast.Unparen(call.Args[param])
	if addr, is := arg.(*ast.UnaryExpr); is && addr.Op == token.AND {
		return ast.Unparen(addr.X)
	}
	return arg
}

// write notes a write of the status of obj: as a fact about a parameter, or as a finding. A request is one to the API server:
// it writes also an object that was made here.
func (s *statusWriters) write(d *ast.FuncDecl, at ast.Node, obj ast.Expr, isRequest bool, what string) {
	from, index := s.origin(d, obj)
	kind, fn := s.kind(obj), s.function(d)
	switch {
	case from == receiver && kind != nil:
		from, index = parameter, -1
	case from == receiver:
		return
	case from == parameter && kind != nil && defaulter(fn):
		from = read
	}
	if i := s.sameKind(fn, kind); isRequest && from != read && from != parameter && i >= 0 {
		// What is sent is made from the parameter, as for server-side apply.
		from, index = parameter, i
	}
	if from == parameter {
		if !slices.Contains(s.params[fn], index) {
			s.params[fn] = append(s.params[fn], index)
		}
		return
	}
	name, ours := s.whose(obj)
	if !s.runtime || name == "" || ours || from != read && !isRequest || s.ofReceiver(d, obj) || testFolder(s.pass.Pkg.Path()) {
		return
	}
	s.found = append(s.found, found(at, "this %s %s in a package that has no reconciler for it; have the reconciler of %s report it, "+
		"for example from a field of the spec or an annotation", what, name, name))
}

// sameKind returns the index of the first parameter that is of a kind, or -1.
func (*statusWriters) sameKind(fn *types.Func, kind *types.TypeName) int {
	for i := range fn.Signature().Params().Len() {
		if kind != nil && kindOf(fn.Signature().Params().At(i).Type()) == kind {
			return i
		}
	}
	return -1
}

// defaulter tells the method of a webhook that sets defaults: its object is not that of a reconciler.
func defaulter(fn *types.Func) bool { return fn.Name() == "Default" && fn.Signature().Recv() != nil }

// whose returns the name of the custom resource that an expression is, and whether its status is this package's to write.
func (s *statusWriters) whose(obj ast.Expr) (name string, ours bool) {
	if kind := s.kind(obj); kind != nil {
		if !custom(kind) {
			return "", false
		}
		return kind.Name(), s.registered(kind) || kind.Pkg() == s.pass.Pkg
	}
	// What Status().Apply takes is made for a kind.
	t := typeName(s.pass.TypesInfo.TypeOf(obj))
	if t == nil || t.Pkg() == nil || strings.HasPrefix(t.Pkg().Path(), "k8s.io/") {
		return "", false
	}
	name, is := strings.CutSuffix(t.Name(), "ApplyConfiguration")
	if !is {
		return "", false
	}
	for _, kinds := range []map[*types.TypeName]bool{s.looped, s.plain} {
		for kind := range kinds {
			ours = ours || kind.Name() == name
		}
	}
	return name, ours
}

// ofReceiver tells objects in fields of the receiver: such a type is a helper, whose owner decides whose object it is.
func (s *statusWriters) ofReceiver(d *ast.FuncDecl, e ast.Expr) bool {
	for {
		sel, is := ast.Unparen(e).(*ast.SelectorExpr)
		if !is {
			from, _ := s.origin(d, e)
			return from == receiver
		}
		e = sel.X
	}
}
