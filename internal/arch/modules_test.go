package arch

import (
	"path"
	"strings"
)

// wild reports whether a module tests public operators or charts. Nobody imports or installs these modules, they are in
// no workspace, and those operators, or Helm, decide about versions there.
func wild(dir string) bool {
	return dir == "test/charts" || dir == "test/wild" || strings.HasPrefix(dir, "test/wild/")
}

// replaced finds replace lines outside the modules that nobody imports or installs.
func replaced(t *tree) []string {
	var findings []string
	for _, m := range t.modules {
		for _, r := range m.mod.Replace {
			if m.dir != "test" && !wild(m.dir) {
				findings = append(findings, finding(path.Join(m.dir, "go.mod"), "replaces %s; only test/go.mod may", r.Old.Path))
			}
		}
	}
	if t.work != nil {
		for _, r := range t.work.Replace {
			findings = append(findings, finding("go.work", "replaces %s; only test/go.mod may", r.Old.Path))
		}
	}
	return findings
}

// nested finds imports between modules, but from those of tests.
func nested(t *tree) []string {
	var findings []string
	for _, p := range t.packages {
		if p.module.dir == "." || p.module.dir == "test" || wild(p.module.dir) {
			continue
		}
		own := p.module.mod.Module.Mod.Path
		for _, f := range p.files {
			for name, pos := range f.imports() {
				if _, ours := t.ours(name); ours && name != own && !strings.HasPrefix(name, own+"/") {
					findings = append(findings, t.at(pos, "imports %s; module %s stands alone", name, p.module.dir))
				}
			}
		}
	}
	return findings
}

// versions finds dependencies that two modules require at different versions.
func versions(t *tree) []string {
	first := map[string]string{}
	where := map[string]string{}
	var findings []string
	for _, m := range t.modules {
		for _, r := range m.mod.Require {
			dep, version := r.Mod.Path, r.Mod.Version
			if wild(m.dir) {
				continue
			}
			if _, ours := t.ours(dep); ours || dep == t.root() {
				continue
			}
			file := path.Join(m.dir, "go.mod")
			if first[dep] == "" {
				first[dep], where[dep] = version, file
			} else if first[dep] != version {
				findings = append(findings, finding(file, "%s at %s, but %s in %s; run go work sync", dep, version, first[dep], where[dep]))
			}
		}
	}
	return findings
}

// dependencies finds direct requirements of the root module without a sentence in
// ARCHITECTURE.md, and sentences about what is not required any more.
func dependencies(t *tree) []string {
	const document = "ARCHITECTURE.md"
	described := describedModules(t.documents[document])
	direct := map[string]bool{}
	for _, m := range t.modules {
		if m.dir != "." {
			continue
		}
		for _, r := range m.mod.Require {
			direct[r.Mod.Path] = !r.Indirect
		}
	}
	var findings []string
	for dep, isDirect := range direct {
		if isDirect && !described[dep] {
			findings = append(findings, finding(document, "has no sentence about %s, which go.mod requires", dep))
		}
	}
	for dep := range described {
		if !direct[dep] {
			findings = append(findings, finding(document, "describes %s, which go.mod does not require directly", dep))
		}
	}
	return findings
}

// describedModules returns the module paths that open an item of the list under the
// heading Dependencies and are followed by words.
func describedModules(document string) map[string]bool {
	described := map[string]bool{}
	_, section, _ := strings.Cut(document, "\n## Dependencies\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		names, sentence, _ := strings.Cut(line, ": ")
		if list, ok := strings.CutPrefix(names, "- "); ok && strings.TrimSpace(sentence) != "" {
			for name := range strings.SplitSeq(list, ", ") {
				described[strings.Trim(name, "`")] = true
			}
		}
	}
	return described
}
