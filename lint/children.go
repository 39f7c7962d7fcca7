package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

func ownerless() rule {
	return rule{
		name: "ownerless",
		doc: "report objects that a reconciler creates without an owner reference\n\n" +
			"Without an owner reference the object stays when its owner is deleted, and its changes wake nobody. Reported is Create " +
			"of an object that the function makes in the namespace of the primary and passes to nothing that could set the reference. Way " +
			"out: controllerutil.SetControllerReference, or package children.",
		find: func(w *world) []finding {
			var all []finding
			for _, d := range w.reachedDecls() {
				ast.Inspect(d.Body, func(n ast.Node) bool {
					r := w.clientCall(n)
					if r.verb != "Create" || r.status {
						return true
					}
					obj, kind := w.objectOf(r.obj), w.kind(r.obj)
					if obj == nil || kind == nil || !w.ownable(d, obj) {
						return true
					}
					all = append(all, found(n, "this creates a %s without an owner reference, so it stays when its owner is deleted; "+
						"call controllerutil.SetControllerReference first, or declare it as one of the children", kind.Name()))
					return true
				})
			}
			return all
		},
	}
}

// ownable reports whether a local object is made in the namespace of a primary, and nothing here could set its owner.
func (w *world) ownable(d *ast.FuncDecl, obj types.Object) bool {
	same, sure := false, true
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				placed, harmless := w.assignment(obj, left, n.Rhs[min(i, len(n.Rhs)-1)], len(n.Lhs) == len(n.Rhs))
				same, sure = same || placed, sure && harmless
			}
		case *ast.CallExpr:
			if w.clientCall(n).verb == "" && w.mentionsCall(n, obj) {
				sure = false
			}
		case *ast.FuncLit:
			sure = sure && !w.mentionsObject(n.Body, obj)
		case *ast.CompositeLit:
			// Kept in a structure, the object may get its owner elsewhere.
			sure = sure && !slices.ContainsFunc(n.Elts, func(e ast.Expr) bool { return w.objectOf(e) == obj })
		}
		return true
	})
	return same && sure
}

// assignment looks at one assignment: placed says that it makes obj in the namespace of a primary, and harmless that it neither sets
// an owner nor lets other code do so. alone: there is a value for each variable.
func (w *world) assignment(obj types.Object, left, right ast.Expr, alone bool) (placed, harmless bool) {
	switch {
	case w.objectOf(left) == obj && alone:
		lit := literal(right)
		return lit != nil && w.inNamespace(lit), lit != nil && !mentions(lit, "OwnerReferences")
	case w.mentionsObject(left, obj) && mentions(left, "OwnerReferences", "ObjectMeta"):
		return false, false
	}
	return false, w.objectOf(right) != obj // else it has another name, too
}

// mentionsCall reports whether a call is given the object, or is one of its methods that could set owners.
func (w *world) mentionsCall(call *ast.CallExpr, obj types.Object) bool {
	if sel, is := ast.Unparen(call.Fun).(*ast.SelectorExpr); is && w.objectOf(sel.X) == obj {
		return !strings.HasPrefix(sel.Sel.Name, "Get") && !slices.Contains([]string{"SetLabels", "SetAnnotations", "SetName", "SetNamespace"}, sel.Sel.Name)
	}
	return slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		if addr, is := ast.Unparen(arg).(*ast.UnaryExpr); is && addr.Op == token.AND {
			arg = addr.X
		}
		return w.objectOf(arg) == obj
	})
}

func literal(e ast.Expr) *ast.CompositeLit {
	e = ast.Unparen(e)
	if addr, is := e.(*ast.UnaryExpr); is && addr.Op == token.AND {
		e = addr.X
	}
	lit, _ := e.(*ast.CompositeLit)
	return lit
}

// inNamespace reports whether a literal object is in the namespace of a primary or of the request.
func (w *world) inNamespace(lit *ast.CompositeLit) bool {
	found := false
	ast.Inspect(lit, func(n ast.Node) bool {
		kv, is := n.(*ast.KeyValueExpr)
		if !is {
			return true
		}
		key, is := kv.Key.(*ast.Ident)
		if !is || key.Name != "Namespace" {
			return true
		}
		value := ast.Unparen(kv.Value)
		if call, is := value.(*ast.CallExpr); is {
			value = call.Fun
		}
		sel, is := ast.Unparen(value).(*ast.SelectorExpr)
		if is && (sel.Sel.Name == "Namespace" || sel.Sel.Name == "GetNamespace") {
			kind := w.kind(sel.X)
			found = found || kind != nil && w.registered(kind) || isNamed(w.pass.TypesInfo.TypeOf(sel.X), reconcilePath, "Request")
		}
		return false
	})
	return found
}

// mentions reports whether one of some names stands in the code.
func mentions(n ast.Node, names ...string) bool {
	is := false
	ast.Inspect(n, func(n ast.Node) bool {
		id, ident := n.(*ast.Ident)
		is = is || ident && slices.Contains(names, id.Name)
		return !is
	})
	return is
}

func (w *world) mentionsObject(n ast.Node, obj types.Object) bool {
	is := false
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ident := n.(*ast.Ident); ident && w.pass.TypesInfo.ObjectOf(id) == obj {
			is = true
		}
		return !is
	})
	return is
}

func finalizer() rule {
	return rule{
		name: "finalizer",
		doc: "report a finalizer on the primary that nothing removes\n\n" +
			"An object whose finalizer nobody removes cannot be deleted. Reported is AddFinalizer on a kind of the package if no code in it removes a finalizer, and " +
			"in reconcilers of trimtab's loop, which adds and removes the finalizer itself. Owned children need none: garbage collection " +
			"deletes them. Way out: remove the line, or remove the finalizer when the object is being deleted; with the loop, " +
			"implement loop.Cleaner.",
		find: func(w *world) []finding {
			removes := slices.ContainsFunc(w.files, func(f *ast.File) bool {
				return mentions(f, "RemoveFinalizer", "SetFinalizers", "Finalizers", "RemoveFinalizers")
			})
			var all []finding
			for _, d := range w.reachedDecls() {
				ast.Inspect(d.Body, func(n ast.Node) bool {
					call, is := n.(*ast.CallExpr)
					if !is || !w.calls(call, controllerutil, "AddFinalizer") || len(call.Args) != 2 {
						return true
					}
					kind := w.kind(call.Args[0])
					switch {
					case kind == nil || !w.registered(kind):
					case w.looped[kind] && !w.plain[kind]:
						all = append(all, found(call, "the loop adds and removes the finalizer of %s, if its reconciler has a Cleanup method; "+
							"remove this line, and implement loop.Cleaner if there is something to clean up", kind.Name()))
					case !removes:
						all = append(all, found(call, "nothing in this package removes this finalizer, so no %s can be deleted; remove it when the object is "+
							"being deleted, or do not add it: owned children are deleted without one", kind.Name()))
					}
					return true
				})
			}
			return all
		},
	}
}

func staleReady() rule {
	return rule{
		name: "staleready",
		doc: "report that Ready of another object is read without its generation\n\n" +
			"After a change of its spec, a custom resource still says Ready=True until its controller has seen the change. Who reads only the condition goes on too " +
			"early. Reported is meta.IsStatusConditionTrue(x.Status.Conditions, \"Ready\") in a reconciliation, for a kind whose status has " +
			"observedGeneration, in a function that compares no generation. Way out: compare status.observedGeneration with metadata.generation, " +
			"or use package health.",
		find: func(w *world) []finding {
			var all []finding
			for _, d := range w.reachedDecls() {
				if mentions(d.Body, "ObservedGeneration", "Generation", "GetGeneration") {
					continue
				}
				ast.Inspect(d.Body, func(n ast.Node) bool {
					call, is := n.(*ast.CallExpr)
					if !is || !w.calls(call, "k8s.io/apimachinery/pkg/api/meta", "IsStatusConditionTrue") || len(call.Args) != 2 || !w.isReady(call.Args[1]) {
						return true
					}
					obj := w.below(call.Args[0], "Status")
					if obj == nil {
						return true
					}
					if kind := w.kind(obj); custom(kind) && !w.registered(kind) && observes(kind) {
						all = append(all, found(call, "Ready of this %s may be about an earlier generation; also compare its status.observedGeneration with "+
							"metadata.generation, or use package health", kind.Name()))
					}
					return true
				})
			}
			return all
		},
	}
}

func (w *world) isReady(e ast.Expr) bool {
	value := w.pass.TypesInfo.Types[e].Value
	return value != nil && value.ExactString() == `"Ready"`
}

// observes reports whether a kind's status has observedGeneration.
func observes(kind *types.TypeName) bool {
	obj, _, _ := types.LookupFieldOrMethod(kind.Type(), true, kind.Pkg(), "Status")
	status, is := obj.(*types.Var)
	if !is {
		return false
	}
	field, _, _ := types.LookupFieldOrMethod(status.Type(), true, kind.Pkg(), "ObservedGeneration")
	_, is = field.(*types.Var)
	return is
}
