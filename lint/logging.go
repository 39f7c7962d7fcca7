package lint

import (
	"go/ast"
	"go/constant"
	"go/types"
	"slices"
	"strings"
)

func logging() rule {
	return rule{
		name: "reconcilelog",
		doc: "report loggers that do not belong to one reconciliation\n\n" +
			"The logger in the context names the controller, the object and the reconcile id. One in a field of the reconciler or in a variable of the package " +
			"has none of these, and is shared by concurrent calls; fmt and klog go elsewhere. Way out: log.FromContext(ctx), or logs.For(ctx, r), " +
			"or Run.Log with trimtab's loop. A GetLogger method has to follow the convention: logs.For(ctx, r), or " +
			"log.FromContext(ctx).WithName(\"Controllers\").WithName(\"<Type>\").",
		find: func(w *world) []finding {
			all := append(w.loggerFields(), w.getLoggers()...)
			for _, d := range w.reachedDecls() {
				all = append(all, w.foreignLogs(d)...)
			}
			return all
		},
	}
}

// eachReconciler visits the reconcilers that are structures.
func (w *world) eachReconciler(visit func(name *types.TypeName, s *ast.StructType)) {
	for _, f := range w.files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is {
				return true
			}
			name, _ := w.pass.TypesInfo.Defs[spec.Name].(*types.TypeName)
			if s, is := spec.Type.(*ast.StructType); is && w.reconcilers[name] {
				visit(name, s)
			}
			return true
		})
	}
}

func (w *world) loggerFields() []finding {
	var all []finding
	w.eachReconciler(func(name *types.TypeName, s *ast.StructType) {
		for _, field := range s.Fields.List {
			if isNamed(w.typeOf(field.Type), "github.com/go-logr/logr", "Logger") && w.logsBy(field) {
				all = append(all, found(field, "a logger in a field of %s is shared by all its reconciliations and names none of them; take it from the context: "+
					"log.FromContext(ctx), or logs.For(ctx, r)", name.Name()))
			}
		}
	})
	return all
}

// logsBy reports whether a reconciliation calls a method of the logger in a field. One that is passed on, to predicates for
// example, or used during the start, is no matter.
func (w *world) logsBy(field *ast.Field) bool {
	logger := map[types.Object]bool{}
	for _, name := range field.Names {
		logger[w.pass.TypesInfo.Defs[name]] = true
	}
	is := len(field.Names) == 0 // embedded
	for _, d := range w.reachedDecls() {
		ast.Inspect(d.Body, func(n ast.Node) bool {
			method, selects := n.(*ast.SelectorExpr)
			if selects {
				if x, through := ast.Unparen(method.X).(*ast.SelectorExpr); through {
					is = is || logger[w.pass.TypesInfo.Uses[x.Sel]]
				}
			}
			return !is
		})
	}
	return is
}

// getLoggers checks methods GetLogger of reconcilers.
func (w *world) getLoggers() []finding {
	var all []finding
	for _, d := range w.decls {
		fn := w.function(d)
		owner := typeNameOfReceiver(fn)
		if d.Name.Name != "GetLogger" || owner == nil || !w.reconcilers[owner] || fn.Signature().Params().Len() != 1 {
			continue
		}
		if len(d.Body.List) != 1 || !w.byConvention(d.Body.List[0], owner.Name()) {
			all = append(all, found(d.Name, "GetLogger of %s does not follow the convention; return logs.For(ctx, r), or "+
				"log.FromContext(ctx).WithName(\"Controllers\").WithName(%q)", owner.Name(), owner.Name()))
		}
	}
	return all
}

// byConvention reports whether a statement returns the logger of a reconciler.
func (w *world) byConvention(s ast.Stmt, owner string) bool {
	ret, is := s.(*ast.ReturnStmt)
	if !is || len(ret.Results) != 1 {
		return false
	}
	call, is := ast.Unparen(ret.Results[0]).(*ast.CallExpr)
	if !is {
		return false
	}
	if w.calls(call, ownPath+"/logs", "For") {
		return true
	}
	for _, name := range []string{owner, "Controllers"} {
		sel, is := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if !is || sel.Sel.Name != "WithName" || len(call.Args) != 1 {
			return false
		}
		if value := w.pass.TypesInfo.Types[call.Args[0]].Value; value == nil || value.Kind() != constant.String || constant.StringVal(value) != name {
			return false
		}
		if call, is = ast.Unparen(sel.X).(*ast.CallExpr); !is {
			return false
		}
	}
	fn := w.callee(call)
	return fn != nil && fn.Name() == "FromContext"
}

// foreignLogs finds what a function that Reconcile calls logs past the context.
func (w *world) foreignLogs(d *ast.FuncDecl) []finding {
	const wayOut = "; use the logger of the context: log.FromContext(ctx), or Run.Log with trimtab's loop"
	var all []finding
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			switch {
			case w.calls(n, "fmt", "Print", "Printf", "Println"):
				all = append(all, found(n, "fmt.%s in a reconciliation goes to standard output, without the object's name"+wayOut, w.callee(n).Name()))
			case w.klogs(n):
				all = append(all, found(n, "klog in a reconciliation has neither the controller nor the object"+wayOut))
			}
		case *ast.Ident:
			v, is := w.pass.TypesInfo.Uses[n].(*types.Var)
			if is && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() && isNamed(v.Type(), "github.com/go-logr/logr", "Logger") {
				all = append(all, found(n, "the logger %s belongs to the package and names no object"+wayOut, v.Name()))
			}
		}
		return true
	})
	return all
}

// klogs tells calls by which klog writes a line.
func (w *world) klogs(call *ast.CallExpr) bool {
	fn := w.callee(call)
	return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "k8s.io/klog/v2" && slices.ContainsFunc(
		[]string{"Info", "Warning", "Error", "Fatal", "Exit"}, func(p string) bool { return strings.HasPrefix(fn.Name(), p) })
}

func clientset() rule {
	return rule{
		name: "clientset",
		doc: "report a clientset of client-go in a package of reconcilers\n\n" +
			"controller-runtime's client reads from the cache, so that reading costs no request. A clientset goes past the cache, needs permissions of its own, and is " +
			"a second way to do the same. Reported are fields of reconcilers and calls of NewForConfig. Way out: the client; with trimtab's loop, " +
			"Run.Clientset, which logs the reason; otherwise an allowance with a reason, such as that it reads the logs of Pods.",
		find: func(w *world) []finding {
			if len(w.reconcilers) == 0 {
				return nil
			}
			var all []finding
			w.eachReconciler(func(name *types.TypeName, s *ast.StructType) {
				for _, field := range s.Fields.List {
					t := w.pass.TypesInfo.TypeOf(field.Type)
					if isNamed(t, "k8s.io/client-go/kubernetes", "Interface") || isNamed(t, "k8s.io/client-go/kubernetes", "Clientset") {
						all = append(all, found(field, "%s has a clientset, which reads past the cache; use the client, or allow it: //trimtab:allow clientset REASON", name.Name()))
					}
				}
			})
			for _, f := range w.files {
				ast.Inspect(f, func(n ast.Node) bool {
					if call, is := n.(*ast.CallExpr); is && w.calls(call, "k8s.io/client-go/kubernetes", "NewForConfig", "NewForConfigOrDie") {
						all = append(all, found(call, "a clientset reads past the cache; use the manager's client, or allow it: //trimtab:allow clientset REASON"))
					}
					return true
				})
			}
			return all
		},
	}
}
