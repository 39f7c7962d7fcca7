package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

const (
	runtimePath    = "sigs.k8s.io/controller-runtime"
	clientPath     = runtimePath + "/pkg/client"
	builderPath    = runtimePath + "/pkg/builder"
	reconcilePath  = runtimePath + "/pkg/reconcile"
	controllerutil = runtimePath + "/pkg/controller/controllerutil"
	metaPath       = "k8s.io/apimachinery/pkg/apis/meta/v1"
	ownPath        = "github.com/trimtab-dev/trimtab"
	loopPath       = ownPath + "/loop"
)

// world is what all rules know of a package.
type world struct {
	pass *analysis.Pass
	// relevant: the package uses kinds. runtime: it uses controller-runtime, too.
	relevant, runtime bool
	// files are those that are neither tests nor generated.
	files []*ast.File
	// looped are the kinds that the loop reconciles here, plain those that a reconciler of controller-runtime does.
	looped, plain map[*types.TypeName]bool
	// reconcilers are the types with a Reconcile method, and cleaners those among them with Cleanup.
	reconcilers, cleaners map[*types.TypeName]bool
	// decls are the functions and methods that files declare, in order.
	decls []*ast.FuncDecl
	// reached are the functions that a Reconcile or Cleanup method may call, and these themselves.
	reached    map[*types.Func]bool
	allowances []*allowance
}

// worldAnalyzer is what all analyzers build on.
func worldAnalyzer() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "reconcilers", Doc: "find the reconcilers of a package, their kinds and the functions that they call",
		ResultType: reflect.TypeFor[*world](),
		Run:        func(pass *analysis.Pass) (any, error) { return newWorld(pass), nil },
	}
}

// in returns the world as another analyzer sees it: with its facts and reports.
func (w *world) in(pass *analysis.Pass) *world {
	seen := *w
	seen.pass = pass
	return &seen
}

func newWorld(pass *analysis.Pass) *world {
	w := &world{
		pass: pass, looped: map[*types.TypeName]bool{}, plain: map[*types.TypeName]bool{},
		reconcilers: map[*types.TypeName]bool{}, cleaners: map[*types.TypeName]bool{}, reached: map[*types.Func]bool{},
	}
	for _, p := range pass.Pkg.Imports() {
		if strings.HasPrefix(p.Path()+"/", runtimePath+"/") || strings.HasPrefix(p.Path()+"/", ownPath+"/") {
			w.relevant, w.runtime = true, true
		}
		w.relevant = w.relevant || p.Path() == metaPath
	}
	if !w.relevant || strings.HasPrefix(pass.Pkg.Path()+"/", runtimePath+"/") {
		w.relevant = false
		return w
	}
	for _, f := range pass.Files {
		if strings.HasSuffix(pass.Fset.Position(f.Package).Filename, "_test.go") || ast.IsGenerated(f) || forTests(f) {
			continue
		}
		w.files = append(w.files, f)
		w.allowances = append(w.allowances, allowancesIn(pass.Fset, f)...)
		for _, d := range f.Decls {
			if fn, is := d.(*ast.FuncDecl); is && fn.Body != nil {
				w.decls = append(w.decls, fn)
			}
		}
	}
	w.findReconcilers()
	w.findRegistered()
	return w
}

// forTests tells files that only tests use: those that import a test library.
func forTests(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool {
		p := strings.Trim(s.Path.Value, `"`)
		return p == "testing" || strings.HasPrefix(p, "github.com/onsi/ginkgo") || strings.HasPrefix(p, "github.com/stretchr/testify")
	})
}

// testFolder tells packages that only tests use.
func testFolder(importPath string) bool {
	return slices.ContainsFunc(strings.Split(importPath, "/"), func(s string) bool {
		return slices.Contains([]string{"test", "tests", "e2e", "testing", "testutil", "testutils", "testhelpers", "fake", "fakes", "mock", "mocks"}, s) ||
			strings.HasSuffix(s, "test")
	}) && !strings.Contains(importPath, "/testdata/")
}

// findReconcilers finds Reconcile and Cleanup methods, the kinds in their signatures, and what they call.
func (w *world) findReconcilers() {
	bodies := map[*types.Func]*ast.FuncDecl{}
	var todo []*types.Func
	for _, d := range w.decls {
		fn := w.function(d)
		bodies[fn] = d
		if w.reconciles(d, fn) {
			todo = append(todo, fn)
		}
	}
	for len(todo) > 0 {
		fn := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if w.reached[fn] {
			continue
		}
		w.reached[fn] = true
		ast.Inspect(bodies[fn].Body, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is {
				if called, is := w.pass.TypesInfo.Uses[id].(*types.Func); is && bodies[called.Origin()] != nil {
					todo = append(todo, called.Origin())
				}
			}
			return true
		})
	}
}

// reconciles reports whether fn is the Reconcile or Cleanup method of a reconciler, and notes that.
func (w *world) reconciles(d *ast.FuncDecl, fn *types.Func) bool {
	sig := fn.Signature()
	if sig.Recv() == nil || sig.Params().Len() != 2 || !isNamed(sig.Params().At(0).Type(), "context", "Context") {
		return false
	}
	owner, param := typeName(sig.Recv().Type()), sig.Params().At(1).Type()
	if run := runOf(param); run != nil && (fn.Name() == "Reconcile" || fn.Name() == "Cleanup") {
		if kind := kindOf(run); kind != nil {
			w.looped[kind] = true
		}
		w.reconcilers[owner] = true
		if fn.Name() == "Cleanup" {
			w.cleaners[owner] = true
		}
		return true
	}
	if fn.Name() != "Reconcile" || sig.Results().Len() != 2 || !isNamed(sig.Results().At(0).Type(), reconcilePath, "Result") {
		return false
	}
	w.reconcilers[owner] = true
	if kind := kindOf(param); kind != nil {
		w.plain[kind] = true
	}
	if len(d.Type.Params.List) == 2 && len(d.Type.Params.List[1].Names) == 1 {
		w.fetched(d, w.pass.TypesInfo.Defs[d.Type.Params.List[1].Names[0]])
	}
	return true
}

// fetched notes the kind that a Reconcile method reads by the name in its request.
func (w *world) fetched(d *ast.FuncDecl, request types.Object) {
	ast.Inspect(d.Body, func(n ast.Node) bool {
		c := w.clientCall(n)
		if c.verb != "Get" || len(c.call.Args) < 3 {
			return true
		}
		if key, is := ast.Unparen(c.call.Args[1]).(*ast.SelectorExpr); is && w.objectOf(key.X) == request && request != nil {
			if kind := w.kind(c.obj); kind != nil {
				w.plain[kind] = true
			}
		}
		return true
	})
}

// findRegistered finds the kinds for which the package registers controllers: with For, or with a watch that requests
// the object itself.
func (w *world) findRegistered() {
	for _, f := range w.files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || len(call.Args) == 0 {
				return true
			}
			itself := slices.ContainsFunc(call.Args, w.enqueuesObject)
			for i, arg := range call.Args {
				if kind := w.kind(arg); kind != nil && (itself || i == 0 && w.calls(call, builderPath, "For")) {
					w.plain[kind] = true
				}
			}
			return true
		})
	}
	w.findLooped()
}

// enqueuesObject tells the handler that requests the object of the event itself.
func (w *world) enqueuesObject(e ast.Expr) bool {
	name := typeName(w.typeOf(e))
	return name != nil && name.Pkg() != nil && name.Pkg().Path() == runtimePath+"/pkg/handler" && strings.HasSuffix(name.Name(), "EnqueueRequestForObject")
}

// findLooped finds the kinds for which trimtab's packages are used: they are their first type arguments.
func (w *world) findLooped() {
	for id, instance := range w.pass.TypesInfo.Instances {
		obj := w.pass.TypesInfo.Uses[id]
		if obj == nil || obj.Pkg() == nil || instance.TypeArgs.Len() == 0 || w.inTest(id.Pos()) {
			continue
		}
		place, is := strings.CutPrefix(obj.Pkg().Path(), ownPath+"/")
		first, _, _ := strings.Cut(place, "/")
		if !is || !slices.Contains([]string{"loop", "children", "component", "external", "generator"}, first) {
			continue
		}
		if kind := kindOf(instance.TypeArgs.At(0)); kind != nil {
			w.looped[kind] = true
		}
	}
}

// registered reports whether the package has a reconciler of a kind.
func (w *world) registered(kind *types.TypeName) bool { return w.looped[kind] || w.plain[kind] }

func (w *world) inTest(at token.Pos) bool {
	return !slices.ContainsFunc(w.files, func(f *ast.File) bool { return f.FileStart <= at && at < f.FileEnd })
}

func (w *world) function(d *ast.FuncDecl) *types.Func {
	fn, _ := w.pass.TypesInfo.Defs[d.Name].(*types.Func)
	return fn
}

// reachedDecls are the functions that Reconcile may call.
func (w *world) reachedDecls() []*ast.FuncDecl {
	return slices.DeleteFunc(slices.Clone(w.decls), func(d *ast.FuncDecl) bool { return !w.reached[w.function(d)] })
}

// runOf returns the type of the object of a loop.Run, or nil.
func runOf(t types.Type) types.Type {
	named, is := types.Unalias(deref(t)).(*types.Named)
	if !is || named.TypeArgs().Len() != 1 || !isNamed(named, loopPath, "Run") {
		return nil
	}
	return named.TypeArgs().At(0)
}

// typeName returns the name of a type or of what it points to, or nil.
func typeName(t types.Type) *types.TypeName {
	if named, is := types.Unalias(deref(t)).(*types.Named); is {
		return named.Obj()
	}
	return nil
}

func deref(t types.Type) types.Type {
	if p, is := types.Unalias(t).(*types.Pointer); is {
		return p.Elem()
	}
	return t
}

func isNamed(t types.Type, pkg, name string) bool {
	n := typeName(t)
	return n != nil && n.Pkg() != nil && n.Pkg().Path() == pkg && n.Name() == name
}

// kindOf returns the kind of Kubernetes object that a type is, or points to: a struct with TypeMeta and ObjectMeta.
func kindOf(t types.Type) *types.TypeName {
	if t == nil {
		return nil
	}
	named := typeName(t)
	if named == nil {
		return nil
	}
	s, is := named.Type().Underlying().(*types.Struct)
	if !is || !embeds(s, "TypeMeta") || !embeds(s, "ObjectMeta") {
		return nil
	}
	return named
}

func embeds(s *types.Struct, name string) bool {
	for f := range s.Fields() {
		if f.Embedded() && f.Name() == name && isNamed(f.Type(), metaPath, name) {
			return true
		}
	}
	return false
}

// custom reports whether a kind comes with a CRD that an operator may own, and is no part of Kubernetes.
func custom(kind *types.TypeName) bool {
	return kind != nil && kind.Pkg() != nil && !strings.HasPrefix(kind.Pkg().Path(), "k8s.io/") && path.Base(kind.Pkg().Path()) != "main"
}
