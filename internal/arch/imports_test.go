package arch

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// ranks order the root module's top folders: one may import those of lower rank, never its
// equals. A rank of zero imports nothing of ours. internal has none; what a package
// reaches through it counts as its own.
func ranks() map[string]int {
	return map[string]int{
		"api": 0, "trace": 0, "graph": 0, "logs": 0, "patch": 0, "crdcheck": 0, "webhook": 0, "lint": 0,
		"conditions": 1, "health": 1, "trigger": 1,
		"loop":     2,
		"node":     3,
		"external": 4, "component": 4, "children": 4,
		"operator": 5, "generator": 5,
		"samples": 6,
		".":       7, "cmd": 7,
	}
}

// door is where texts from outside come in; traces are full of them.
const door = "internal/plain"

// isKit tells test kits: they may import everything, and only tests import them.
func isKit(dir string) bool {
	name := path.Base(dir)
	return name == "testenv" || name != "test" && strings.HasSuffix(name, "test")
}

func top(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	return first
}

// layers finds packages that reach a package of their own rank or above.
func layers(t *tree) []string {
	var findings []string
	graph := ownImports(t)
	for _, p := range t.packages {
		if p.module.dir != "." || isKit(p.dir) || top(p.dir) == "internal" || len(p.product()) == 0 {
			continue
		}
		rank, ok := ranks()[top(p.dir)]
		if !ok {
			findings = append(findings, finding(p.dir, "has no rank; give it one in internal/arch and a line in ARCHITECTURE.md"))
			continue
		}
		for dir, via := range reach(graph, p.dir) {
			if dir == door && top(p.dir) == "trace" {
				continue
			}
			other, ranked := ranks()[top(dir)]
			if top(dir) == top(p.dir) || !ranked && top(dir) != "internal" {
				continue
			}
			if ranked && other >= rank || rank == 0 {
				findings = append(findings, finding(p.dir, "must not reach %s (%s)", dir, strings.Join(via, " → ")))
			}
		}
	}
	return findings
}

// ownImports maps each folder to the folders of ours that its product code imports.
func ownImports(t *tree) map[string][]string {
	graph := map[string][]string{}
	for _, p := range t.packages {
		imported := map[string]bool{}
		for _, f := range p.product() {
			for name := range f.imports() {
				if dir, ok := t.ours(name); ok {
					imported[dir] = true
				}
			}
		}
		graph[p.dir] = slices.Sorted(maps.Keys(imported))
	}
	return graph
}

// reach returns the folders that can be reached from one, each with the shortest way there.
func reach(graph map[string][]string, from string) map[string][]string {
	ways := map[string][]string{}
	queue := [][]string{{from}}
	for len(queue) > 0 {
		way := queue[0]
		queue = queue[1:]
		for _, next := range graph[way[len(way)-1]] {
			if _, seen := ways[next]; seen || next == from {
				continue
			}
			ways[next] = append(slices.Clone(way), next)
			queue = append(queue, ways[next])
		}
	}
	return ways
}

// kits finds product code that imports a test kit.
func kits(t *tree) []string {
	var findings []string
	for _, p := range t.packages {
		if isKit(p.dir) || p.module.dir == "test" {
			continue
		}
		for _, f := range p.product() {
			for name, pos := range f.imports() {
				if dir, ok := t.ours(name); ok && isKit(dir) {
					findings = append(findings, t.at(pos, "imports the test kit %s; only tests and test kits do", dir))
				}
			}
		}
	}
	return findings
}

// managers finds imports of controller-runtime's machinery outside the packages that run it.
func managers(t *tree) []string {
	const base = "sigs.k8s.io/controller-runtime"
	banned := []string{base, base + "/pkg/builder", base + "/pkg/controller", base + "/pkg/manager", base + "/pkg/source"}
	allowed := []string{"loop", "trigger", "children", "component", "operator"}
	var findings []string
	for _, p := range t.packages {
		if p.module.dir != "." || slices.Contains(allowed, top(p.dir)) || isKit(p.dir) || p.files[0].syntax.Name.Name == "main" {
			continue
		}
		for _, f := range p.product() {
			for name, pos := range f.imports() {
				if slices.Contains(banned, name) {
					findings = append(findings, t.at(pos, "imports %s; that is for %s", name, strings.Join(allowed, ", ")))
				}
			}
		}
	}
	return findings
}

// confined finds imports of the libraries of generators elsewhere, and of generators by what is no sample: whoever writes
// manifests in Go does not link Helm.
func confined(t *tree) []string {
	homes := map[string][]string{
		"helm.sh/helm": {"generator/helm"}, "github.com/Masterminds/sprig": {"generator/helm", "generator/templates"},
		"sigs.k8s.io/kustomize": {"generator/kustomize"}, "github.com/fluxcd/pkg/envsubst": {"generator/transform"},
		"go.opentelemetry.io/otel": {"trace/spans"}, "sigs.k8s.io/controller-tools": {"internal/kindgen"},
		"github.com/yuin/goldmark": {"internal/site"},
	}
	var findings []string
	for _, p := range t.packages {
		if p.module.dir != "." || isKit(p.dir) {
			continue
		}
		for _, f := range p.product() {
			for name, pos := range f.imports() {
				for library, home := range homes {
					if strings.HasPrefix(name+"/", library+"/") && !slices.Contains(home, p.dir) {
						findings = append(findings, t.at(pos, "imports %s; that is for %s", name, strings.Join(home, " and ")))
					}
				}
				if dir, ok := t.ours(name); ok && top(dir) == "generator" && top(p.dir) != "generator" && top(p.dir) != "samples" {
					findings = append(findings, t.at(pos, "imports %s; that is for operators", dir))
				}
			}
		}
	}
	return findings
}

// pure finds what reads the world in files named decide*.go and in packages named decide.
func pure(t *tree) []string {
	var findings []string
	for _, p := range t.packages {
		for _, f := range p.product() {
			if !strings.HasPrefix(path.Base(f.path), "decide") && path.Base(path.Dir(f.path)) != "decide" {
				continue
			}
			for name, pos := range f.imports() {
				if impure(name) {
					findings = append(findings, t.at(pos, "imports %q; a decision takes facts and returns a choice", name))
				}
			}
			findings = append(findings, clockReads(t, f)...)
		}
	}
	return findings
}

func impure(importPath string) bool {
	for _, banned := range []string{
		"context", "log", "os", "net", "io", "sync", "crypto/rand", "math/rand",
		"github.com/go-logr/logr", "k8s.io/klog/v2", "k8s.io/client-go", "k8s.io/utils/clock",
		"sigs.k8s.io/controller-runtime",
	} {
		if importPath == banned || strings.HasPrefix(importPath, banned+"/") {
			return true
		}
	}
	return false
}

// clockReads finds uses of package time that ask what time it is or wait.
func clockReads(t *tree, f file) []string {
	reads := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}
	var findings []string
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(reads, s.Sel.Name) {
				findings = append(findings, t.at(s.Pos(), "time.%s reads the clock; take the time as a fact", s.Sel.Name))
			}
		}
		return true
	})
	return findings
}
