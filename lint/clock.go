package lint

import (
	"go/ast"
	"go/types"
	"strings"
)

func statusClock() rule {
	return rule{
		name: "statusclock",
		doc: "report the current time in a status, set in each reconciliation\n\n" +
			"A status that says when it was last written is never the same twice: each reconciliation writes it, each write wakes the " +
			"controller again, and no reconciliation is free. Reported is a time that is stored under no condition. Way out: store a time when " +
			"something changes, in an if; a condition's lastTransitionTime does that by itself.",
		find: func(w *world) []finding {
			var all []finding
			for _, d := range w.reachedDecls() {
				conditional := conditionals(d.Body)
				for _, st := range w.stores(d.Body, "Status") {
					kind := w.kind(st.obj)
					if st.value == nil || kind == nil || !w.registered(kind) || inside(conditional, st.at) || !w.now(d, st.value) {
						continue
					}
					all = append(all, found(st.at, "each reconciliation writes another time to the status of %s, which wakes the controller again; store it only "+
						"when something changes", kind.Name()))
				}
			}
			return all
		},
	}
}

// now reports whether an expression is the current time: a call, or a variable that was set to one.
func (w *world) now(d *ast.FuncDecl, e ast.Expr) bool {
	is := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			if strings.HasPrefix(calledName(n), "Set") {
				return false
			}
			is = is || w.calls(n, metaPath, "Now", "NowMicro") || w.calls(n, "time", "Now")
		case *ast.Ident:
			v, local := w.pass.TypesInfo.Uses[n].(*types.Var)
			is = is || local && timeLike(v.Type()) && w.setToNow(d, v)
		}
		return !is
	})
	return is
}

// asksTime reports whether an expression is a call that returns the current time, or a conversion of one.
func (w *world) asksTime(e ast.Expr) bool {
	call, is := ast.Unparen(e).(*ast.CallExpr)
	if !is {
		return false
	}
	if w.calls(call, metaPath, "NewTime", "NewMicroTime") && len(call.Args) == 1 {
		return w.asksTime(call.Args[0])
	}
	return w.calls(call, metaPath, "Now", "NowMicro") || w.calls(call, "time", "Now")
}

func calledName(call *ast.CallExpr) string {
	switch x := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

func timeLike(t types.Type) bool {
	return isNamed(t, metaPath, "Time") || isNamed(t, metaPath, "MicroTime") || isNamed(t, "time", "Time")
}

// setToNow reports whether a variable has one value, which is the current time.
func (w *world) setToNow(d *ast.FuncDecl, v *types.Var) bool {
	times, now := 0, false
	ast.Inspect(d.Body, func(n ast.Node) bool {
		a, is := n.(*ast.AssignStmt)
		if !is || len(a.Lhs) != len(a.Rhs) {
			return true
		}
		for i, left := range a.Lhs {
			if w.objectOf(left) == v {
				times++
				now = w.asksTime(a.Rhs[i])
			}
		}
		return true
	})
	return times == 1 && now
}

// conditionals are the parts of a body that run only sometimes, and what comes after a statement that may return early
// without an error in hand.
func conditionals(body *ast.BlockStmt) []ast.Node {
	var all []ast.Node
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			all = append(all, n.Body)
			if n.Else != nil {
				all = append(all, n.Else)
			}
		case *ast.CaseClause, *ast.CommClause, *ast.FuncLit:
			all = append(all, n)
		}
		return true
	})
	for _, s := range body.List {
		// if nothing changed { return }: what follows is conditional, too.
		if branch, is := s.(*ast.IfStmt); is && mentions(branch.Cond, "Status", "Equal", "DeepEqual") && leaves(branch.Body) {
			all = append(all, after{body, branch})
		}
	}
	return all
}

// after is the part of a body behind one of its statements.
type after struct {
	*ast.BlockStmt
	branch *ast.IfStmt
}

func leaves(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	_, is := b.List[len(b.List)-1].(*ast.ReturnStmt)
	return is
}

func inside(parts []ast.Node, n ast.Node) bool {
	for _, p := range parts {
		from := p.Pos()
		if a, is := p.(after); is {
			from = a.branch.End()
		}
		if from <= n.Pos() && n.End() <= p.End() {
			return true
		}
	}
	return false
}

func statusOrder() rule {
	return rule{
		name: "statusorder",
		doc: "report lists in a status in the random order of a map\n\n" +
			"The range over a map has another order each time. A list that is filled from it differs from the one before although nothing changed, and each reconciliation " +
			"writes the status. Reported is append to a list of the status in a range over a map, or to a variable that is stored in the " +
			"status, without sorting in the same function. Way out: range over slices.Sorted(maps.Keys(m)), or sort the list.",
		find: func(w *world) []finding {
			var all []finding
			for _, d := range w.reachedDecls() {
				if w.sorts(d) {
					continue
				}
				ast.Inspect(d.Body, func(n ast.Node) bool {
					r, is := n.(*ast.RangeStmt)
					if !is || !isMap(w.pass.TypesInfo.TypeOf(r.X)) {
						return true
					}
					all = append(all, w.unordered(d, r)...)
					return true
				})
			}
			return all
		},
	}
}

func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	_, is := t.Underlying().(*types.Map)
	return is
}

// sorts reports whether a function sorts anything, itself or by a function with such a name.
func (*world) sorts(d *ast.FuncDecl) bool {
	is := false
	ast.Inspect(d.Body, func(n ast.Node) bool {
		if id, ident := n.(*ast.Ident); ident {
			is = is || strings.Contains(strings.ToLower(id.Name), "sort") || strings.Contains(strings.ToLower(id.Name), "order")
		}
		return !is
	})
	return is
}

// unordered finds lists of a status that a range over a map fills.
func (w *world) unordered(d *ast.FuncDecl, r *ast.RangeStmt) []finding {
	var all []finding
	const text = "this list of the status of %s has another order in each reconciliation, so that it is written each time; range over slices.Sorted(maps.Keys(m)), or sort it"
	ast.Inspect(r.Body, func(n ast.Node) bool {
		a, is := n.(*ast.AssignStmt)
		if !is || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
			return true
		}
		call, is := ast.Unparen(a.Rhs[0]).(*ast.CallExpr)
		if !is || calledName(call) != "append" {
			return true
		}
		if obj := w.below(a.Lhs[0], "Status"); obj != nil {
			all = append(all, found(a, text, w.kind(obj).Name()))
			return true
		}
		v := w.objectOf(a.Lhs[0])
		for _, st := range w.stores(d.Body, "Status") {
			if v != nil && st.value != nil && w.objectOf(st.value) == v && st.at.Pos() > r.End() {
				all = append(all, found(a, text, w.kind(st.obj).Name()))
			}
		}
		return true
	})
	return all
}
