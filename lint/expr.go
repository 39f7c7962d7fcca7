package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// objectOf returns what an identifier means, or nil.
func (w *world) objectOf(e ast.Expr) types.Object {
	if id, is := ast.Unparen(e).(*ast.Ident); is {
		return w.pass.TypesInfo.ObjectOf(id)
	}
	return nil
}

// typeOf returns the type of an expression, or one that is invalid.
func (w *world) typeOf(e ast.Expr) types.Type {
	if t := w.pass.TypesInfo.TypeOf(e); t != nil {
		return t
	}
	return types.Typ[types.Invalid]
}

// kind returns the kind of an expression.
func (w *world) kind(e ast.Expr) *types.TypeName { return kindOf(w.typeOf(e)) }

// callee returns the function or method that is called, or nil.
func (w *world) callee(call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	switch x := fun.(type) {
	case *ast.IndexExpr:
		fun = x.X
	case *ast.IndexListExpr:
		fun = x.X
	}
	var id *ast.Ident
	switch x := fun.(type) {
	case *ast.Ident:
		id = x
	case *ast.SelectorExpr:
		id = x.Sel
	default:
		return nil
	}
	fn, _ := w.pass.TypesInfo.Uses[id].(*types.Func)
	return fn
}

// calls reports whether call is one of a function or method of a package.
func (w *world) calls(call *ast.CallExpr, pkg string, names ...string) bool {
	fn := w.callee(call)
	return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == pkg && slices.Contains(names, fn.Name())
}

// request is a call of controller-runtime's client.
type request struct {
	call *ast.CallExpr
	verb string
	// status: it is a call of Status().
	status bool
	obj    ast.Expr
}

// clientCall returns the request that a node is, or one without a verb.
func (w *world) clientCall(n ast.Node) request {
	call, is := n.(*ast.CallExpr)
	if !is || !w.calls(call, clientPath, "Get", "Create", "Update", "Patch", "Delete", "Apply") {
		return request{}
	}
	sel, is := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !is || w.callee(call).Signature().Recv() == nil || len(call.Args) < 2 {
		return request{}
	}
	r := request{call: call, verb: sel.Sel.Name, obj: call.Args[1]}
	if receiver := typeName(w.callee(call).Signature().Recv().Type()); receiver != nil && strings.HasPrefix(receiver.Name(), "SubResource") {
		through, is := ast.Unparen(sel.X).(*ast.CallExpr)
		if !is || w.callee(through) == nil || w.callee(through).Name() != "Status" {
			return request{}
		}
		r.status = true
	} else if r.verb == "Get" {
		if len(call.Args) < 3 {
			return request{}
		}
		r.obj = call.Args[2]
	}
	r.obj = ast.Unparen(r.obj)
	if addr, is := r.obj.(*ast.UnaryExpr); is && addr.Op == token.AND {
		r.obj = ast.Unparen(addr.X)
	}
	return r
}

// below returns the object below whose field, which is Spec or Status, e lies; or nil.
func (w *world) below(e ast.Expr, field string) ast.Expr {
	for {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			if x.Sel.Name == field && w.kind(x.X) != nil {
				return ast.Unparen(x.X)
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
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

// store is an assignment below Spec or Status.
type store struct {
	at   ast.Node
	obj  ast.Expr // the object that is changed
	path ast.Expr // what is assigned to
	// value is what is assigned, or nil.
	value ast.Expr
}

// stores returns what code changes below a field of objects.
func (w *world) stores(body ast.Node, field string) []store {
	var all []store
	add := func(at ast.Node, e, value ast.Expr) {
		if obj := w.below(e, field); obj != nil {
			all = append(all, store{at: at, obj: obj, path: e, value: value})
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, e := range n.Lhs {
				var value ast.Expr
				if len(n.Rhs) == len(n.Lhs) {
					value = n.Rhs[i]
				}
				add(n, e, value)
			}
		case *ast.IncDecStmt:
			add(n, n.X, nil)
		case *ast.CallExpr:
			w.storesOf(n, add)
		}
		return true
	})
	return all
}

// storesOf adds what a call changes: through a pointer that it is given, or as a method with a pointer receiver.
func (w *world) storesOf(call *ast.CallExpr, add func(at ast.Node, e, value ast.Expr)) {
	if id, is := ast.Unparen(call.Fun).(*ast.Ident); is && (id.Name == "delete" || id.Name == "clear") && len(call.Args) > 0 && w.callee(call) == nil {
		add(call, call.Args[0], nil)
		return
	}
	fn := w.callee(call)
	if fn == nil || !changes(fn.Name()) {
		return
	}
	for _, arg := range call.Args {
		if addr, is := ast.Unparen(arg).(*ast.UnaryExpr); is && addr.Op == token.AND {
			add(call, addr.X, nil)
		}
	}
	sel, is := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if recv := fn.Signature().Recv(); is && recv != nil {
		if _, pointer := recv.Type().(*types.Pointer); pointer {
			add(call, sel.X, nil)
		}
	}
}

// changes tells names of functions that change what they are given.
func changes(name string) bool {
	return slices.ContainsFunc([]string{"Set", "Remove", "Mark", "Append"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// origin is where a variable's value comes from, as far as one function shows.
type origin int

const (
	unknown origin = iota
	// parameter of the function, not of a literal within it.
	parameter
	receiver
	// fresh: made here, as a literal or a copy.
	fresh
	// read: filled by Get, or an element of a list that was, or asserted from an interface.
	read
)

// origin tells where the object that e stands for comes from in function d. index is that of the parameter.
func (w *world) origin(d *ast.FuncDecl, e ast.Expr) (from origin, index int) {
	e = ast.Unparen(e)
	if star, is := e.(*ast.StarExpr); is {
		return w.origin(d, star.X)
	}
	if w.isRunObj(e) {
		return read, 0
	}
	if x, is := e.(*ast.IndexExpr); is {
		if isItems(x.X) {
			return read, 0
		}
		return unknown, 0
	}
	obj := w.objectOf(e)
	if obj == nil {
		return unknown, 0
	}
	sig := w.function(d).Signature()
	if sig.Recv() == obj {
		return receiver, 0
	}
	for i := range sig.Params().Len() {
		if sig.Params().At(i) == obj {
			return parameter, i
		}
	}
	return w.assigned(d, obj), 0
}

// isRunObj tells the object of a loop.Run.
func (w *world) isRunObj(e ast.Expr) bool {
	sel, is := e.(*ast.SelectorExpr)
	return is && sel.Sel.Name == "Obj" && runOf(w.pass.TypesInfo.TypeOf(sel.X)) != nil
}

// assigned tells where the value of a local variable comes from. Reading into it outweighs how it was declared, but not that it
// is a copy somewhere.
func (w *world) assigned(d *ast.FuncDecl, obj types.Object) origin {
	from, copied := unknown, false
	note := func(o origin) { from = max(from, o) }
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, value := range w.valuesOf(n, obj) {
				note(w.made(value))
				copied = copied || isCopy(value)
			}
		case *ast.ValueSpec:
			note(w.declared(n, obj))
		case *ast.RangeStmt:
			if n.Value != nil && isItems(n.X) && w.objectOf(n.Value) == obj {
				note(read)
			}
		case *ast.CallExpr:
			if r := w.clientCall(n); r.verb == "Get" && w.objectOf(r.obj) == obj {
				note(read)
			}
		}
		return true
	})
	if copied {
		return fresh
	}
	return from
}

// valuesOf returns what an assignment gives to a variable.
func (w *world) valuesOf(n *ast.AssignStmt, obj types.Object) []ast.Expr {
	var all []ast.Expr
	for i, left := range n.Lhs {
		if w.objectOf(left) == obj && (len(n.Rhs) == len(n.Lhs) || i == 0) {
			all = append(all, n.Rhs[min(i, len(n.Rhs)-1)])
		}
	}
	return all
}

// isCopy tells a call of DeepCopy, also one that is asserted to a type.
func isCopy(e ast.Expr) bool {
	if assert, is := ast.Unparen(e).(*ast.TypeAssertExpr); is {
		e = assert.X
	}
	call, is := ast.Unparen(e).(*ast.CallExpr)
	if !is {
		return false
	}
	sel, is := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return is && strings.HasPrefix(sel.Sel.Name, "DeepCopy") && !strings.HasPrefix(sel.Sel.Name, "DeepCopyInto")
}

// declared tells where the value of a variable comes from that is declared with var.
func (w *world) declared(n *ast.ValueSpec, obj types.Object) origin {
	for i, name := range n.Names {
		switch {
		case w.objectOf(name) != obj:
		case len(n.Values) == 0:
			return fresh
		case i < len(n.Values):
			return w.made(n.Values[i])
		}
	}
	return unknown
}

// isItems tells the elements of a list.
func isItems(e ast.Expr) bool {
	sel, is := ast.Unparen(e).(*ast.SelectorExpr)
	return is && sel.Sel.Name == "Items"
}

// made tells what kind of value an expression makes.
func (w *world) made(e ast.Expr) origin {
	switch x := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		return fresh
	case *ast.UnaryExpr:
		if _, is := ast.Unparen(x.X).(*ast.CompositeLit); is && x.Op == token.AND {
			return fresh
		}
		return w.made(x.X)
	case *ast.CallExpr:
		if id, is := x.Fun.(*ast.Ident); is && id.Name == "new" {
			return fresh
		}
		if isCopy(x) {
			return fresh
		}
	case *ast.TypeAssertExpr:
		// A copy that is asserted back to its type is still a copy.
		if call, is := ast.Unparen(x.X).(*ast.CallExpr); is {
			return w.made(call)
		}
		return read
	case *ast.IndexExpr:
		if isItems(x.X) {
			return read
		}
	case *ast.SelectorExpr:
		if w.isRunObj(x) {
			return read
		}
	}
	return unknown
}
