// Package gobuild builds packages in tests. go test keeps the result of a test as long as all that it knows of is the same, and it
// does not know what a program read that a test has started. So this package tells it which files a build reads.
//
// go test looks at no file outside the module of the test. A test of one module that builds packages of another one has a link Link to a
// folder that holds both; gobuild names their files by it.
package gobuild

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Link is the path of a link, from the folder of a test's package.
const Link = "testdata/root"

// Output calls go build for package pkg, with flags before it, and returns what the command wrote. The error is the command's.
func Output(t testing.TB, pkg string, flags ...string) ([]byte, error) {
	t.Helper()
	var overlay []string
	for _, flag := range flags {
		if strings.HasPrefix(flag, "-overlay=") {
			overlay = append(overlay, flag)
		}
	}
	tell(t, "", append(overlay, pkg)...)
	args := append(append([]string{"build"}, flags...), pkg)
	return exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
}

// Builds tells go test that the test starts something that builds packages of the module in folder, with their tests.
func Builds(t testing.TB, folder string, packages ...string) {
	t.Helper()
	tell(t, folder, append([]string{"-test"}, packages...)...)
}

// Reads tells go test that the test starts something that reads a file, or all in a folder.
func Reads(t testing.TB, name string) {
	t.Helper()
	// To go through a folder is to look at all that is in it, as go test sees.
	if err := filepath.WalkDir(name, func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
		t.Fatal(err)
	}
}

// files writes the folders and the files of what a package consists of, and the files of its module with the versions of others. What is
// in a version does not change.
const files = `{{if .Module}}{{if or .Module.Main .Module.Replace}}{{.Module.GoMod}}
{{.Module.Dir}}/go.sum
{{.Dir}}
{{range .GoFiles}}{{$.Dir}}/{{.}}
{{end}}{{range .IgnoredGoFiles}}{{$.Dir}}/{{.}}
{{end}}{{range .CgoFiles}}{{$.Dir}}/{{.}}
{{end}}{{range .IgnoredOtherFiles}}{{$.Dir}}/{{.}}
{{end}}{{range .SFiles}}{{$.Dir}}/{{.}}
{{end}}{{range .HFiles}}{{$.Dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$.Dir}}/{{.}}
{{end}}{{end}}{{end}}`

// tell looks at all that a build reads, as go test sees; args end the command go list. Folders that an overlay makes are not there.
func tell(t testing.TB, folder string, args ...string) {
	t.Helper()
	names := goCommand(t, folder, append([]string{"list", "-deps", "-f", files}, args...)...)
	// A workspace takes the highest version that one of its modules requires.
	names = append(names, goCommand(t, folder, "list", "-m", "-f", "{{.GoMod}}")...)
	for _, work := range goCommand(t, folder, "env", "GOWORK") {
		names = append(names, work, work+".sum")
	}
	root, linked, err := link()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if below, err := filepath.Rel(root, name); linked && err == nil && filepath.IsLocal(below) {
			name = filepath.Join(Link, below)
		}
		if err := look(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// goCommand returns the lines that the go command writes in a folder, without empty ones.
func goCommand(t testing.TB, folder string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
}

// link returns the folder that Link leads to, if there is one.
func link() (root string, linked bool, err error) {
	to, err := os.Readlink(Link)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err == nil {
		root, err = filepath.Abs(filepath.Join(filepath.Dir(Link), to)) // as the go command writes it
	}
	return root, true, err
}

// look looks at a file and at the folder that it is in, whose time says that a file came or went. Files of modules have no part in that.
func look(name string) error {
	_, err := os.Stat(name)
	if err != nil || slices.Contains([]string{"go.mod", "go.sum", "go.work", "go.work.sum"}, filepath.Base(name)) {
		return err
	}
	_, err = os.Stat(filepath.Dir(name))
	return err
}
