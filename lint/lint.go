package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// address is where the rules are explained.
const address = "https://github.com/trimtab-dev/trimtab/blob/main/docs/lint.md"

// rule is what an analyzer is made of.
type rule struct {
	name, doc string
	facts     []analysis.Fact
	// find returns what is wrong in a package that uses kinds of Kubernetes.
	find func(w *world) []finding
}

// finding is a mistake, told with the way out.
type finding struct {
	at   token.Pos
	text string
}

func found(at ast.Node, format string, args ...any) finding {
	return finding{at: at.Pos(), text: fmt.Sprintf(format, args...)}
}

// Analyzers returns the analyzers, in the order in which docs/lint.md explains them. The last one reports allowances that
// nothing needs; it is right only if all others run, too.
func Analyzers() []*analysis.Analyzer {
	shared := worldAnalyzer()
	var all []*analysis.Analyzer
	for _, r := range rules() {
		all = append(all, analyzer(r, shared))
	}
	return append(all, allowances(all, shared))
}

func rules() []rule {
	return []rule{
		statusOwner(), specWrite(), directWrite(), requeueError(), backgroundContext(), logging(), clientset(), ownerless(),
		childCategory(), finalizer(), needlessDelete(), statusClock(), statusOrder(), wideWatch(), readBack(), staleReady(),
	}
}

// used are the allowances that an analyzer needed.
type used []*allowance

// analyzer makes one that reports what a rule finds and nobody allows.
func analyzer(r rule, shared *analysis.Analyzer) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: r.name, Doc: r.doc, URL: address + "#" + r.name,
		Requires: []*analysis.Analyzer{shared}, FactTypes: r.facts, ResultType: reflect.TypeFor[used](),
		Run: func(pass *analysis.Pass) (any, error) {
			w := pass.ResultOf[shared].(*world).in(pass)
			if !w.relevant {
				return used(nil), nil
			}
			var needed used
			for _, f := range r.find(w) {
				if a := w.allowed(r.name, f.at); a != nil {
					needed = append(needed, a)
					continue
				}
				pass.Report(analysis.Diagnostic{Pos: f.at, Message: f.text})
			}
			return needed, nil
		},
	}
}

// allowance is a comment that permits what a rule forbids.
type allowance struct {
	at           token.Pos
	file         string
	line         int
	name, reason string
}

const marker = "//trimtab:allow"

// allowancesIn finds the allowances of a file.
func allowancesIn(fset *token.FileSet, file *ast.File) []*allowance {
	var all []*allowance
	for _, group := range file.Comments {
		for _, c := range group.List {
			rest, is := strings.CutPrefix(c.Text, marker)
			if !is || rest != "" && rest[0] != ' ' {
				continue
			}
			name, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
			place := fset.Position(c.Pos())
			all = append(all, &allowance{at: c.Pos(), file: place.Filename, line: place.Line, name: name, reason: strings.TrimSpace(reason)})
		}
	}
	return all
}

// allowed returns the allowance of a rule for a place, which stands in its line or above, where there may be several.
func (w *world) allowed(name string, at token.Pos) *allowance {
	place := w.pass.Fset.Position(at)
	for line := place.Line; line > 0; line-- {
		here := 0
		for _, a := range w.allowances {
			if a.file != place.Filename || a.line != line {
				continue
			}
			here++
			if a.name == name && a.reason != "" {
				return a
			}
		}
		if here == 0 && line < place.Line {
			break
		}
	}
	return nil
}

// allowances reports comments that allow nothing.
func allowances(all []*analysis.Analyzer, shared *analysis.Analyzer) *analysis.Analyzer {
	var names []string
	for _, a := range all {
		names = append(names, a.Name)
	}
	return &analysis.Analyzer{
		Name: "allowance",
		Doc: "report //trimtab:allow comments without reason or need\n\n" +
			"An allowance for which nothing is reported hides the next mistake in its line. Remove it, or write the name of the " +
			"analyzer and a reason.",
		URL: address + "#allowance", Requires: append(slices.Clone(all), shared),
		Run: func(pass *analysis.Pass) (any, error) {
			needed := map[*allowance]bool{}
			for _, a := range all {
				for _, u := range pass.ResultOf[a].(used) {
					needed[u] = true
				}
			}
			for _, a := range pass.ResultOf[shared].(*world).allowances {
				switch {
				case !slices.Contains(names, a.name):
					pass.Reportf(a.at, "trimtab:allow names %q, which is no analyzer; use one of %s", a.name, strings.Join(names, ", "))
				case a.reason == "":
					pass.Reportf(a.at, "trimtab:allow %s has no reason and allows nothing; write why the code is right behind the name", a.name)
				case !needed[a]:
					pass.Reportf(a.at, "nothing in this line or the next needs trimtab:allow %s; remove it", a.name)
				}
			}
			return nil, nil
		},
	}
}
