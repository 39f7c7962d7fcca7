package arch

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// repository is the root of this repository, seen from the folder of this package.
const repository = "../.."

var update = flag.Bool("update", false, "accept what the repository has now")

// rules are what is kept true, by the name of the tree in testdata/teeth that breaks it.
func rules() map[string]struct {
	why   string
	check func(*tree) []string
} {
	return map[string]struct {
		why   string
		check func(*tree) []string
	}{
		"layers":        {"what is below must be usable and readable without what is above", layers},
		"kits":          {"users' binaries must not link test servers and fault injectors", kits},
		"runtime":       {"a manager elsewhere would be a second way to start and stop things", managers},
		"confined":      {"an operator with manifests in Go must not link Helm, kustomize or sprig", confined},
		"decide":        {"a decision that reads a clock or a server cannot be enumerated, replayed or planned", pure},
		"replace":       {"go install and go run ...@version refuse modules with replace lines", replaced},
		"nested":        {"a module linked to Kubernetes itself must not need an unpublished sibling", nested},
		"versions":      {"with different versions each module compiles Kubernetes again", versions},
		"dependencies":  {"each direct dependency costs all users; the sentence says what for", dependencies},
		"described":     {"a reader finds a package's place in ARCHITECTURE.md", described},
		"comments":      {"a reader starts at the package comment", comments},
		"exported":      {"an exported symbol without a word is used by guessing", undocumented},
		"state":         {"state of a package is shared by tests and by two operators in one process", state},
		"sizes":         {"what does not fit on a screen or two is not read", sizes},
		"init":          {"code that runs by being imported cannot be tested or left out", initFunctions},
		"compatibility": {"who reads that something is tested relies on it", compatibility},
		"documents":     {"a dead link or a command that does not exist ends a reader's patience", documents},
	}
}

func TestRepository(t *testing.T) {
	repo, err := load(os.DirFS(repository))
	if err != nil {
		t.Fatal(err)
	}
	for name, rule := range rules() {
		t.Run(name, func(t *testing.T) {
			for _, finding := range sorted(rule.check(repo)) {
				t.Errorf("%s\n\twhy it matters: %s", finding, rule.why)
			}
		})
	}
}

func TestTeeth(t *testing.T) {
	for name, rule := range rules() {
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(filepath.Join("testdata", "teeth", name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			want := wanted(archive)
			if len(want) == 0 {
				t.Fatal("the tree lists no finding in its file \"want\"")
			}
			fsys, err := txtar.FS(archive)
			if err != nil {
				t.Fatal(err)
			}
			broken, err := load(fsys)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, sorted(rule.check(broken))); diff != "" {
				t.Errorf("findings in a tree that breaks the rule (-want +got):\n%s", diff)
			}
		})
	}
}

// wanted takes the file "want" out of the archive and returns its lines.
func wanted(a *txtar.Archive) []string {
	i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
	if i < 0 {
		return nil
	}
	text := strings.TrimSpace(string(a.Files[i].Data))
	a.Files = slices.Delete(a.Files, i, i+1)
	return sorted(strings.Split(text, "\n"))
}

func sorted(findings []string) []string {
	slices.Sort(findings)
	return slices.Compact(findings)
}

func finding(path, format string, args ...any) string {
	return path + ": " + fmt.Sprintf(format, args...)
}
