package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// Files joins file systems, for an Operator whose CRDs or RBAC are in several places.
func Files(all ...fs.FS) fs.FS { return joined(all) }

// Manifests is a file system with the given text: YAML documents, such as what `helm template` prints.
func Manifests(text string) fs.FS {
	return fstest.MapFS{"manifests.yaml": &fstest.MapFile{Data: []byte(text), Mode: 0o444}}
}

// Module returns folders and files of a Go module that the test's own module requires, such as
// "config/crd/bases" or "deploy/crds.yaml", or all of the module if none is named. The version is the one that
// the test is built with. The test fails if there is no such module, folder or file.
func Module(t testing.TB, module string, places ...string) fs.FS {
	t.Helper()
	dir, err := moduleDir(t, module)
	if err != nil {
		t.Fatalf("fault.Module: %v", err)
	}
	if len(places) == 0 {
		return os.DirFS(dir)
	}
	var all []fs.FS
	for _, place := range places {
		at := filepath.Join(dir, filepath.FromSlash(place))
		info, err := os.Stat(at)
		if err != nil {
			t.Fatalf("fault.Module: module %s has no folder or file %q; it would be %s", module, place, at)
		}
		if info.IsDir() {
			all = append(all, os.DirFS(at))
			continue
		}
		text, err := os.ReadFile(at)
		if err != nil {
			t.Fatalf("fault.Module: %v", err)
		}
		all = append(all, fstest.MapFS{info.Name(): &fstest.MapFile{Data: text, Mode: 0o444}})
	}
	return Files(all...)
}

// moduleDir asks the go command where a module's files are.
func moduleDir(t testing.TB, module string) (string, error) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	dir := strings.TrimSpace(string(out))
	failed := &exec.ExitError{}
	switch {
	case errors.As(err, &failed):
		return "", fmt.Errorf("this module does not require %s: %s", module, strings.TrimSpace(string(failed.Stderr)))
	case err != nil:
		return "", fmt.Errorf("ask the go command where module %s is: %w", module, err)
	case dir == "":
		return "", fmt.Errorf("the go command does not say where module %s is; run go mod download, and do not test with -mod=vendor", module)
	}
	return dir, nil
}

// joined are several file systems, each as a folder named by its number.
type joined []fs.FS

var _ fs.ReadDirFS = joined(nil)

// Open opens a file of one of them, or the folder that lists them.
func (j joined) Open(name string) (fs.File, error) {
	if name == "." {
		return j.root().Open(".")
	}
	in, rest, err := j.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return in.Open(rest)
}

// ReadDir lists a folder of one of them, or all of them.
func (j joined) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "." {
		return fs.ReadDir(j.root(), ".")
	}
	in, rest, err := j.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return fs.ReadDir(in, rest)
}

// root is a file system with a folder for each of them.
func (j joined) root() fstest.MapFS {
	root := fstest.MapFS{}
	for i, f := range j {
		if f != nil {
			root[strconv.Itoa(i)] = &fstest.MapFile{Mode: fs.ModeDir | 0o555}
		}
	}
	return root
}

// find returns the file system that has a name, and what it is called there.
func (j joined) find(name string) (fs.FS, string, error) {
	first, rest, _ := strings.Cut(name, "/")
	i, err := strconv.Atoi(first)
	if err != nil || !fs.ValidPath(name) || i < 0 || i >= len(j) || j[i] == nil {
		return nil, "", fs.ErrNotExist
	}
	if rest == "" {
		rest = "."
	}
	return j[i], rest, nil
}
