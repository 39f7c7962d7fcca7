package lint

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/cfg"
)

// watchesAll is the fact that controllers of a package watch all objects of some kinds.
type watchesAll struct{ Kinds []string }

func (*watchesAll) AFact() {}

func (f *watchesAll) String() string { return "watches all " + strings.Join(f.Kinds, ", ") }

func wideWatch() rule {
	return rule{
		name: "widewatch",
		doc: "report a manager whose cache holds every Secret, ConfigMap or Event of the cluster\n\n" +
			"Owns and Watches of such a kind, without options, make the cache hold all objects of the kind, those of others included: memory without limit, and " +
			"permission to read all Secrets. Reported is the NewManager call of a package that uses such controllers and limits nothing. Way " +
			"out: cache.Options.ByObject with a label selector, cache.Options.DefaultNamespaces, builder.OnlyMetadata, or a name with trigger.Reference.",
		facts: []analysis.Fact{new(watchesAll)},
		find: func(w *world) []finding {
			kinds, managers := w.watched()
			if len(kinds) == 0 {
				return nil
			}
			w.pass.ExportPackageFact(&watchesAll{Kinds: kinds})
			var all []finding
			for _, call := range managers {
				if w.visible(call) {
					all = append(all, found(call, "this manager's cache holds every %s of the cluster, because a controller watches the kind without options; limit it "+
						"with cache.Options.ByObject or DefaultNamespaces, or watch with builder.OnlyMetadata", strings.Join(kinds, " and every ")))
				}
			}
			return all
		},
	}
}

// watched returns the kinds of which controllers here, and in imported packages, watch all objects, and the calls that make
// managers without any limit in sight.
func (w *world) watched() (kinds []string, managers []*ast.CallExpr) {
	all := map[string]bool{}
	for _, f := range w.pass.AllPackageFacts() {
		if fact, is := f.Fact.(*watchesAll); is {
			for _, kind := range fact.Kinds {
				all[kind] = true
			}
		}
	}
	limited := false
	for _, f := range w.files {
		limited = limited || mentions(f, "ByObject", "DefaultLabelSelector", "DefaultFieldSelector", "DefaultNamespaces", "NewCache")
		ast.Inspect(f, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if kind := w.wide(call); is && kind != "" {
				all[kind] = true
			}
			if is && (w.calls(call, runtimePath+"/pkg/manager", "New") || w.newsManager(call)) {
				managers = append(managers, call)
			}
			return true
		})
	}
	if limited {
		managers = nil
	}
	return slices.Sorted(maps.Keys(all)), managers
}

// visible reports whether the options of a manager are a literal in this package: what makes them elsewhere may limit the cache.
func (w *world) visible(call *ast.CallExpr) bool {
	if len(call.Args) != 2 {
		return false
	}
	if literal(call.Args[1]) != nil {
		return true
	}
	options := w.objectOf(call.Args[1])
	literals, others := 0, 0
	for _, d := range w.decls {
		ast.Inspect(d.Body, func(n ast.Node) bool {
			a, is := n.(*ast.AssignStmt)
			if !is {
				return true
			}
			for i, left := range a.Lhs {
				switch {
				case options == nil || w.objectOf(left) != options:
				case len(a.Lhs) == len(a.Rhs) && literal(a.Rhs[i]) != nil:
					literals++
				default:
					others++
				}
			}
			return true
		})
	}
	return literals > 0 && others == 0
}

// newsManager tells ctrl.NewManager, which is a variable.
func (w *world) newsManager(call *ast.CallExpr) bool {
	sel, is := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !is || sel.Sel.Name != "NewManager" {
		return false
	}
	v, is := w.pass.TypesInfo.Uses[sel.Sel].(*types.Var)
	return is && v.Pkg() != nil && v.Pkg().Path() == runtimePath
}

// wide returns the kind of which a call watches all objects.
func (w *world) wide(call *ast.CallExpr) string {
	if call == nil {
		return ""
	}
	owns := w.calls(call, builderPath, "Owns") && len(call.Args) == 1
	watches := w.calls(call, builderPath, "Watches") && len(call.Args) == 2
	if !owns && !watches {
		return ""
	}
	kind := w.kind(call.Args[0])
	if kind == nil || kind.Pkg() == nil || kind.Pkg().Path() != "k8s.io/api/core/v1" || !slices.Contains([]string{"Secret", "ConfigMap", "Event"}, kind.Name()) {
		return ""
	}
	return kind.Name()
}

func readBack() rule {
	return rule{
		name: "readback",
		doc: "report that a reconciler reads its object again after it wrote it\n\n" +
			"The client reads from a cache, which learns of the write only later: Get may return the object as it was, and what is decided from that is wrong. " +
			"Reported is Get into the variable that Update or Patch was given, on a path without a return between them. Way out: use " +
			"the object that Update and Patch have filled, or return and let the next reconciliation see it.",
		find: func(w *world) []finding {
			var all []finding
			for _, d := range w.reachedDecls() {
				graph := cfg.New(d.Body, func(*ast.CallExpr) bool { return true })
				for _, b := range graph.Blocks {
					for i, n := range b.Nodes {
						if r := w.requestIn(n, "Update", "Patch"); r.verb != "" && w.objectOf(r.obj) != nil {
							all = append(all, w.reads(b, i+1, r)...)
						}
					}
				}
			}
			slices.SortFunc(all, func(a, b finding) int { return int(a.at - b.at) })
			return slices.Compact(all)
		},
	}
}

// readIn returns the read of an object from the cache among statements that follow its write. ends: the variable then has
// another value, whether or not that came from the cache.
func (w *world) readIn(nodes []ast.Node, obj types.Object, written request) (read ast.Node, ends bool) {
	for _, n := range nodes {
		if a, is := n.(*ast.AssignStmt); is && slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool { return w.objectOf(e) == obj }) {
			return nil, true
		}
		r := w.requestIn(n, "Get")
		if r.verb == "" || w.objectOf(r.obj) != obj || n.Pos() <= written.call.End() {
			continue
		}
		if mentions(r.call.Fun, "APIReader", "Live", "apiReader", "GetAPIReader") {
			return nil, true
		}
		return r.call, true
	}
	return nil, false
}

// requestIn returns the first request with one of the verbs in a statement or expression.
func (w *world) requestIn(n ast.Node, verbs ...string) request {
	var r request
	ast.Inspect(n, func(n ast.Node) bool {
		if _, is := n.(*ast.FuncLit); is {
			return false
		}
		if c := w.clientCall(n); r.verb == "" && slices.Contains(verbs, c.verb) {
			r = c
		}
		return r.verb == ""
	})
	return r
}

// reads finds where the object that was written is read from the cache, in the code that follows and not where the write failed.
func (w *world) reads(from *cfg.Block, start int, written request) []finding {
	obj := w.objectOf(written.obj)
	kind := w.kind(written.obj)
	if kind == nil {
		return nil
	}
	var all []finding
	seen := map[*cfg.Block]bool{}
	var walk func(b *cfg.Block, start int)
	walk = func(b *cfg.Block, start int) {
		if read, ends := w.readIn(b.Nodes[start:], obj, written); read != nil {
			all = append(all, found(read, "this may read the %s as it was before the write above, because the client reads from a cache; use the object that the "+
				"write has filled, or return", kind.Name()))
			return
		} else if ends {
			return
		}
		for _, next := range b.Succs {
			branch, is := next.Stmt.(*ast.IfStmt)
			failed := is && next.Kind == cfg.KindIfThen && w.notNil(branch.Cond) != nil
			if !seen[next] && !failed && (len(next.Nodes) == 0 || next.Nodes[0].Pos() > written.call.Pos()) {
				seen[next] = true
				walk(next, 0)
			}
		}
	}
	walk(from, start)
	return all
}
