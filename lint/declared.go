package lint

import (
	"go/ast"
	"go/types"
	"slices"
)

const childrenPath = ownPath + "/children"

func childCategory() rule {
	return rule{
		name: "childcategory",
		doc: "report a child that may not be created again without loss, and is not protected\n\n" +
			"Anybody can delete a child, and its owner creates it again. What was in a volume, or behind a custom resource of another operator, such as a database, " +
			"may be lost by then. Reported is children.Named of a PersistentVolumeClaim or of a custom resource of another package than the owner's, without Protected. Way " +
			"out: Protected, or an allowance that says why nothing is lost.",
		find: func(w *world) []finding {
			var all []finding
			for _, c := range w.declaredChildren() {
				precious := c.kind.Name() == "PersistentVolumeClaim" || custom(c.kind) && c.kind.Pkg() != c.owner.Pkg()
				if precious && c.sure && !slices.Contains(c.methods, "Protected") {
					all = append(all, found(c.call, "anybody may delete this %s, and what it stands for may be lost with it; add .Protected() to the child, or allow "+
						"it: //trimtab:allow childcategory REASON", c.kind.Name()))
				}
			}
			return all
		},
	}
}

func needlessDelete() rule {
	return rule{
		name: "needlessdelete",
		doc: "report that Cleanup deletes a child which garbage collection deletes\n\n" +
			"An object with an owner reference is deleted with its owner. A request for that, and a finalizer that waits for it, are needless. Reported is Delete, " +
			"in the Cleanup method of a reconciler of trimtab's loop, of a kind that the package declares with children.Named or trigger.Owned. Way out: remove the call, and the Cleanup method if " +
			"nothing else is in it; or an allowance that says why the order matters.",
		find: func(w *world) []finding {
			owned := w.ownedKinds()
			var all []finding
			for _, d := range w.decls {
				if fn := w.function(d); fn.Name() != "Cleanup" || !w.cleaners[typeNameOfReceiver(fn)] {
					continue
				}
				ast.Inspect(d.Body, func(n ast.Node) bool {
					r := w.clientCall(n)
					if r.verb != "Delete" || r.status {
						return true
					}
					if kind := w.kind(r.obj); kind != nil && owned[kind] {
						all = append(all, found(n, "garbage collection deletes each %s that belongs to the object, by its owner reference; remove this call, or allow it: "+
							"//trimtab:allow needlessdelete REASON", kind.Name()))
					}
					return true
				})
			}
			return all
		},
	}
}

// declared is a call of children.Named.
type declared struct {
	call        *ast.CallExpr
	owner, kind *types.TypeName
	// methods are those that are called of the child in the same expression. sure: no others are, because the child is passed on.
	methods []string
	sure    bool
}

// declaredChildren finds the children that the package declares.
func (w *world) declaredChildren() []declared {
	var all []declared
	for _, f := range w.files {
		var path []ast.Node
		ast.Inspect(f, func(n ast.Node) bool {
			if n == nil {
				path = path[:len(path)-1]
				return true
			}
			if call, is := n.(*ast.CallExpr); is && w.calls(call, childrenPath, "Named") {
				if c := w.declaredBy(call, path); c.kind != nil && c.owner != nil {
					all = append(all, c)
				}
			}
			path = append(path, n)
			return true
		})
	}
	return all
}

// declaredBy looks at one call of children.Named below the nodes in path.
func (w *world) declaredBy(call *ast.CallExpr, path []ast.Node) declared {
	c := declared{call: call}
	ast.Inspect(call.Fun, func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is && id.Name == "Named" {
			if args := w.pass.TypesInfo.Instances[id].TypeArgs; args.Len() == 2 {
				c.owner, c.kind = kindOf(args.At(0)), kindOf(args.At(1))
			}
		}
		return true
	})
	// Of a.B().C(), the path has the call of C, its selector, the call of B and its selector.
	i := len(path) - 1
	for ; i > 0; i -= 2 {
		method, selects := path[i].(*ast.SelectorExpr)
		if _, called := path[i-1].(*ast.CallExpr); !selects || !called {
			break
		}
		c.methods = append(c.methods, method.Sel.Name)
	}
	if i >= 0 {
		_, c.sure = path[i].(*ast.CallExpr)
	}
	return c
}

// ownedKinds are the kinds of which the package declares that objects belong to others by owner references.
func (w *world) ownedKinds() map[*types.TypeName]bool {
	owned := map[*types.TypeName]bool{}
	for _, c := range w.declaredChildren() {
		if c.sure && !slices.Contains(c.methods, "Elsewhere") {
			owned[c.kind] = true
		}
	}
	for _, f := range w.files {
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, is := n.(*ast.CompositeLit); is && isNamed(w.typeOf(lit), ownPath+"/trigger", "Owned") {
				if kind := w.kind(valueOf(lit, "Of")); kind != nil {
					owned[kind] = true
				}
			}
			return true
		})
	}
	return owned
}

// valueOf returns the value of a field in a literal, or nil.
func valueOf(lit *ast.CompositeLit, field string) ast.Expr {
	for _, e := range lit.Elts {
		if kv, is := e.(*ast.KeyValueExpr); is {
			if key, is := kv.Key.(*ast.Ident); is && key.Name == field {
				return kv.Value
			}
		}
	}
	return nil
}
