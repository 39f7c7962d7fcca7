package main

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// pkg is a package as go list shows it.
type pkg struct {
	ImportPath, Dir                    string
	Imports, TestImports, XTestImports []string
}

// work is what is to be looked at.
type work struct {
	// changed are the packages with changed files, by import path, and internal/arch; folders are those of the former.
	changed, folders []string
	// importers import one of them, in their tests or otherwise: those that import least come first, because they have the
	// quickest tests.
	importers []string
	// affected are all that do not compile any more if a change was wrong.
	affected []string
}

// rules is the package whose tests are about all files.
const rules = "internal/arch"

// plan chooses packages, by the files that changed. A file that is not a package's own, such as one in testdata, counts for the
// innermost package around it.
func plan(all []pkg, root string, files []string) work {
	w, touched := touch(all, root, files)
	if len(w.changed) == 0 {
		return w
	}
	built := grow(all, touched)
	for _, p := range all {
		tests := slices.Concat(p.TestImports, p.XTestImports)
		if touched[p.ImportPath] || built[p.ImportPath] || anyOf(tests, built) {
			w.affected = append(w.affected, p.ImportPath)
		}
		if !touched[p.ImportPath] && !strings.HasSuffix(p.ImportPath, "/"+rules) && anyOf(slices.Concat(p.Imports, tests), touched) {
			w.importers = append(w.importers, p.ImportPath)
		}
		if !touched[p.ImportPath] && strings.HasSuffix(p.ImportPath, "/"+rules) {
			w.changed = append(w.changed, p.ImportPath)
		}
	}
	needs := map[string]int{}
	for _, p := range all {
		needs[p.ImportPath] = len(p.Imports) + len(p.TestImports) + len(p.XTestImports)
	}
	slices.SortStableFunc(w.importers, func(a, b string) int { return cmp.Compare(needs[a], needs[b]) })
	return w
}

// touch finds the packages with changed files.
func touch(all []pkg, root string, files []string) (w work, touched map[string]bool) {
	names := map[string]string{} // by folder
	for _, p := range all {
		names[filepath.Clean(p.Dir)] = p.ImportPath
	}
	touched = map[string]bool{}
	for _, f := range files {
		dir := filepath.Dir(filepath.Join(root, f))
		for names[dir] == "" && len(dir) > len(root) {
			dir = filepath.Dir(dir)
		}
		if name := names[dir]; name != "" && !touched[name] {
			touched[name] = true
			w.changed, w.folders = append(w.changed, name), append(w.folders, relative(root, dir))
		}
	}
	return w, touched
}

// grow returns the packages and all that import them, directly or not, other than in tests.
func grow(all []pkg, from map[string]bool) map[string]bool {
	found := map[string]bool{}
	for name := range from {
		found[name] = true
	}
	for more := true; more; {
		more = false
		for _, p := range all {
			if !found[p.ImportPath] && anyOf(p.Imports, found) {
				found[p.ImportPath], more = true, true
			}
		}
	}
	return found
}

func anyOf(names []string, in map[string]bool) bool {
	return slices.ContainsFunc(names, func(name string) bool { return in[name] })
}

func relative(root, dir string) string {
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return dir
	}
	return "./" + filepath.ToSlash(rel)
}
