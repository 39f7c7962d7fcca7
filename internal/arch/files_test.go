package arch

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// comments finds packages without exactly one package comment in the usual form.
func comments(t *tree) []string {
	var findings []string
	for _, p := range t.packages {
		files := slices.DeleteFunc(p.product(), func(f file) bool { return f.syntax.Doc == nil })
		switch {
		case len(p.product()) == 0:
		case len(files) == 0:
			findings = append(findings, finding(p.dir, "has no package comment"))
		case len(files) > 1:
			findings = append(findings, finding(p.dir, "has package comments in %s and %s", path.Base(files[0].path), path.Base(files[1].path)))
		case !strings.HasPrefix(files[0].syntax.Doc.Text(), opening(p, files[0])):
			findings = append(findings, finding(files[0].path, "the package comment does not begin with %q", opening(p, files[0])))
		}
	}
	return findings
}

// described finds packages, down to the second level, and modules that ARCHITECTURE.md does
// not link to. Folders below are their parent's matter, and so are public operators.
func described(t *tree) []string {
	const document = "ARCHITECTURE.md"
	var findings []string
	for _, p := range t.packages {
		var place string
		switch parts := strings.Split(p.dir, "/"); {
		case p.module.dir == "test/charts":
			place = p.module.dir
		case wild(p.dir):
			place = "test/wild"
		case p.module.dir != ".":
			place = p.module.dir
		case len(parts) > 1 && slices.Contains([]string{"internal", "samples", "cmd"}, parts[0]):
			place = path.Join(parts[:2]...)
		default:
			place = parts[0]
		}
		if place != "." && !strings.Contains(t.documents[document], "[`"+place+"`]("+place+")") {
			findings = append(findings, finding(document, "has no line about %s in its tables", place))
		}
	}
	return findings
}

func opening(p pkg, f file) string {
	if f.syntax.Name.Name == "main" {
		return "Command " + path.Base(p.path) + " "
	}
	return "Package " + f.syntax.Name.Name + " "
}

// sizes finds files and functions that are too long to be read in one go.
func sizes(t *tree) []string {
	const product, test, function = 500, 1000, 60
	var findings []string
	for _, p := range t.packages {
		for _, f := range p.files {
			limit := product
			if f.test {
				limit = test
			}
			if f.lines > limit && !ast.IsGenerated(f.syntax) {
				findings = append(findings, finding(f.path, "has %d lines; split it, %d is the limit", f.lines, limit))
			}
		}
		for _, f := range p.product() {
			for _, d := range f.syntax.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					lines := t.fset.Position(fn.Body.Rbrace).Line - t.fset.Position(fn.Body.Lbrace).Line - 1
					if lines > function {
						findings = append(findings, t.at(fn.Pos(), "%s has %d lines; split it, %d is the limit", fn.Name.Name, lines, function))
					}
				}
			}
		}
	}
	return findings
}

// initFunctions finds functions named init.
func initFunctions(t *tree) []string {
	var findings []string
	for _, p := range t.packages {
		for _, f := range p.files {
			for _, d := range f.syntax.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "init" && fn.Recv == nil {
					findings = append(findings, t.at(fn.Pos(), "init runs by being imported; let main or the caller do it"))
				}
			}
		}
	}
	return findings
}

var (
	// link is a Markdown link to a file of the repository.
	link = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)
	// fenced is a block of code, in which Go's generics look like links.
	fenced = regexp.MustCompile("(?ms)^```.*?^```")
	// cut is the source of a block of code; see internal/gen.
	cut = regexp.MustCompile(`<!-- cut ([^#\s]+\.go)(?:#\S+)? -->`)
	// command is a make target shown as code.
	command = regexp.MustCompile("(?m)(?:`|^\\s*(?:\\$ )?)make ([a-z]+)")
	// target is a rule of the Makefile, seen through its .PHONY line.
	target = regexp.MustCompile(`(?m)^\.PHONY: (\S+)$`)
)

// documents finds links to files that do not exist, make targets that nobody defined, and
// code cut from packages without a test.
func documents(t *tree) []string {
	var targets []string
	for _, m := range target.FindAllStringSubmatch(t.makefile, -1) {
		targets = append(targets, m[1])
	}
	var findings []string
	for name, text := range t.documents {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			to := path.Join(path.Dir(name), m[1])
			if !slices.ContainsFunc(t.paths, func(p string) bool { return p == to || strings.HasPrefix(p, to+"/") }) {
				findings = append(findings, finding(name, "links to %s, which does not exist", m[1]))
			}
		}
		for _, m := range cut.FindAllStringSubmatch(text, -1) {
			if !t.tested(path.Dir(m[1])) {
				findings = append(findings, finding(name, "shows code of %s, whose folder has no test", m[1]))
			}
		}
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(targets, m[1]) {
				findings = append(findings, finding(name, "says make %s, which the Makefile does not know", m[1]))
			}
		}
	}
	return findings
}

func (t *tree) tested(dir string) bool {
	return slices.ContainsFunc(t.packages, func(p pkg) bool {
		// An API is tested by the operator that it belongs to, in a folder above it.
		return (p.dir == dir || p.dir != "." && strings.HasPrefix(dir, p.dir+"/")) && slices.ContainsFunc(p.files, func(f file) bool { return f.test })
	})
}
