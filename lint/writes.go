package lint

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

func directWrite() rule {
	return rule{
		name: "directwrite",
		doc: "report requests by which a reconciler of trimtab's loop writes its own object\n\n" +
			"The loop writes metadata and status of the object at the end of a pass, in one commit, and only what changed. A second write " +
			"in the pass makes conflicts, and what it returns replaces the changes in memory. Way out: change Run.Obj and return an " +
			"outcome; Run.Persist writes in the middle of a pass.",
		find: func(w *world) []finding {
			var all []finding
			for _, d := range w.reachedDecls() {
				ast.Inspect(d.Body, func(n ast.Node) bool {
					r := w.clientCall(n)
					kind := w.kind(orNil(r.obj))
					if r.verb == "" || r.verb == "Get" || r.verb == "Delete" || r.verb == "Create" || kind == nil || !w.looped[kind] || w.plain[kind] {
						return true
					}
					if from, _ := w.origin(d, r.obj); from == fresh && !r.status {
						return true // another object of the kind, such as one that is made from a template
					}
					all = append(all, found(n, "the reconciler writes its %s itself, beside the loop's commit; change Run.Obj and return an outcome, "+
						"or call Run.Persist", kind.Name()))
					return true
				})
			}
			return all
		},
	}
}

func requeueError() rule {
	return rule{
		name: "requeueerror",
		doc: "report a Result with Requeue or RequeueAfter that is returned with an error\n\n" +
			"controller-runtime ignores the Result if there is an error, and logs that. The object is retried with backoff, not after the time " +
			"that the code states. Way out: return the error alone, or the Result and nil.",
		find: func(w *world) []finding {
			var all []finding
			for _, d := range w.decls {
				all = append(all, w.contradictions(d.Body, nil)...)
			}
			return all
		},
	}
}

// contradictions finds returns of a Result and an error. failed are variables that are known to be no nil, unless body assigns
// to them.
func (w *world) contradictions(body ast.Node, failed []types.Object) []finding {
	failed = slices.DeleteFunc(slices.Clone(failed), func(obj types.Object) bool { return w.assigns(body, obj) })
	var all []finding
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			obj := w.notNil(n.Cond)
			if obj == nil || n.Body == body {
				return true
			}
			if n.Init != nil {
				all = append(all, w.contradictions(n.Init, failed)...)
			}
			all = append(all, w.contradictions(n.Body, append(failed, obj))...)
			if n.Else != nil {
				all = append(all, w.contradictions(n.Else, failed)...)
			}
			return false
		case *ast.ReturnStmt:
			if len(n.Results) == 2 && w.requeues(n.Results[0]) && w.surelyError(n.Results[1], failed) {
				all = append(all, found(n, "the Result asks for another call, and the error makes controller-runtime ignore it; return the error alone, or the Result and nil"))
			}
		}
		return true
	})
	return all
}

// assigns reports whether code may change a variable.
func (w *world) assigns(code ast.Node, obj types.Object) bool {
	is := false
	ast.Inspect(code, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			is = is || slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return w.objectOf(e) == obj })
		case *ast.UnaryExpr:
			is = is || n.Op == token.AND && w.objectOf(n.X) == obj
		}
		return !is
	})
	return is
}

// notNil returns the variable of a condition err != nil, alone or with more conditions.
func (w *world) notNil(cond ast.Expr) types.Object {
	b, is := ast.Unparen(cond).(*ast.BinaryExpr)
	switch {
	case !is:
		return nil
	case b.Op == token.LAND:
		if obj := w.notNil(b.X); obj != nil {
			return obj
		}
		return w.notNil(b.Y)
	case b.Op == token.NEQ && w.pass.TypesInfo.Types[b.Y].IsNil():
		return w.objectOf(b.X)
	}
	return nil
}

// requeues reports whether e is a literal Result that asks for another call.
func (w *world) requeues(e ast.Expr) bool {
	lit, is := ast.Unparen(e).(*ast.CompositeLit)
	if !is || !isNamed(w.pass.TypesInfo.TypeOf(lit), reconcilePath, "Result") {
		return false
	}
	return slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
		kv, is := e.(*ast.KeyValueExpr)
		if !is {
			return false
		}
		key, is := kv.Key.(*ast.Ident)
		value := w.pass.TypesInfo.Types[kv.Value].Value
		zero := value != nil && (value.Kind() == constant.Bool && !constant.BoolVal(value) || value.Kind() == constant.Int && constant.Sign(value) == 0)
		return is && strings.HasPrefix(key.Name, "Requeue") && !zero
	})
}

// surelyError reports whether an error that is returned is never nil.
func (w *world) surelyError(e ast.Expr, failed []types.Object) bool {
	if call, is := ast.Unparen(e).(*ast.CallExpr); is {
		return w.calls(call, "fmt", "Errorf") || w.calls(call, "errors", "New") || w.calls(call, reconcilePath, "TerminalError")
	}
	obj := w.objectOf(e)
	return obj != nil && slices.Contains(failed, obj)
}

func backgroundContext() rule {
	return rule{
		name: "reconcilecontext",
		doc: "report context.Background and context.TODO in a reconciliation\n\n" +
			"The context of a reconciliation ends with the process and at its deadline, and carries the logger and the trace. Calls with another " +
			"context go on when the operator should stop, and their lines have no object. Reported in functions that Reconcile calls and that " +
			"have a context, but not in goroutines and deferred calls. Way out: pass the context on; context.WithoutCancel(ctx) " +
			"keeps its values and does not end.",
		find: func(w *world) []finding {
			var all []finding
			for _, d := range w.reachedDecls() {
				if !w.hasContext(d) {
					continue
				}
				ast.Inspect(d.Body, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.GoStmt, *ast.DeferStmt:
						return false
					case *ast.CallExpr:
						if w.calls(n, "context", "Background", "TODO") {
							all = append(all, found(n, "context.%s in a reconciliation has neither its deadline nor its logger; pass the function's own context, "+
								"or context.WithoutCancel of it if the call must outlive it", w.callee(n).Name()))
						}
					}
					return true
				})
			}
			return all
		},
	}
}

func (w *world) hasContext(d *ast.FuncDecl) bool {
	for param := range w.function(d).Signature().Params().Variables() {
		if isNamed(param.Type(), "context", "Context") && param.Name() != "_" && param.Name() != "" {
			return true
		}
	}
	return false
}
