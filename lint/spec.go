package lint

import (
	"go/ast"
	"go/types"
)

func specWrite() rule {
	return rule{
		name: "specwrite",
		doc: "report changes of the primary's spec in a reconciler\n\n" +
			"The spec is what the user wants. A reconciler that changes it competes with users, GitOps tools and field managers; " +
			"one that changes it only in memory sends the change along with the next Update, or loses it. Way out: compute the value in a local " +
			"variable or a copy (DeepCopy), or have a webhook or a default in the CRD set it. With trimtab's loop, " +
			"Run.CompleteSpec writes fields that only the operator can know.",
		find: func(w *world) []finding {
			var all []finding
			flow := flows{world: w, known: map[flow]bool{}}
			for _, d := range w.reachedDecls() {
				for _, st := range w.stores(d.Body, "Spec") {
					kind := w.kind(st.obj)
					if custom(kind) && w.registered(kind) && kind.Pkg() != w.pass.Pkg && !w.creates(kind) && flow.primary(d, st.obj) {
						all = append(all, found(st.at, "the reconciler changes the spec of %s, which is its user's; work on a copy (DeepCopy) or a local variable, "+
							"or set it in a webhook or by a default in the CRD", kind.Name()))
					}
				}
			}
			return all
		},
	}
}

// creates reports whether the package creates objects of a kind: their spec is then its own, not a user's.
func (w *world) creates(kind *types.TypeName) bool {
	is := false
	for _, d := range w.decls {
		ast.Inspect(d.Body, func(n ast.Node) bool {
			if r := w.clientCall(n); r.verb == "Create" && w.kind(r.obj) == kind {
				is = true
			}
			return !is
		})
	}
	return is
}

// flow is a parameter of a function.
type flow struct {
	fn    *types.Func
	index int
}

// flows tell whether an object is one that was read from the API server, also through parameters.
type flows struct {
	*world
	known map[flow]bool
}

// primary reports whether e, in d, is an object that was read: here, or by each caller that passes it as an argument.
func (f *flows) primary(d *ast.FuncDecl, e ast.Expr) bool {
	from, index := f.origin(d, e)
	switch from {
	case read:
		return true
	case parameter:
		return f.argument(flow{f.function(d), index})
	default:
		return false
	}
}

// argument reports whether a function is called, and each time with an object that was read.
func (f *flows) argument(p flow) bool {
	if is, known := f.known[p]; known {
		return is
	}
	f.known[p] = true // a function that calls itself passes what it was given
	calls, all := 0, true
	if f.reconcilers[typeNameOfReceiver(p.fn)] && p.fn.Name() == "Reconcile" {
		return true
	}
	for _, d := range f.decls {
		ast.Inspect(d.Body, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || f.callee(call) == nil || f.callee(call).Origin() != p.fn {
				return true
			}
			calls++
			arg := argument(call, p.index)
			all = all && arg != nil && f.primary(d, arg)
			return true
		})
	}
	f.known[p] = calls > 0 && all
	return f.known[p]
}

func typeNameOfReceiver(fn *types.Func) *types.TypeName {
	if recv := fn.Signature().Recv(); recv != nil {
		return typeName(recv.Type())
	}
	return nil
}
