package fault

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// Files joins file systems, for an Operator whose CRDs or RBAC are in several places. What cannot be read is refused when the
// result is read.
func Files(all ...fs.FS) fs.FS {
	joined := fstest.MapFS{}
	for i, f := range all {
		if f == nil {
			continue
		}
		err := fs.WalkDir(f, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !apiserver.IsManifest(path) {
				return err
			}
			text, err := fs.ReadFile(f, path)
			joined[fmt.Sprint(i, "/", path)] = &fstest.MapFile{Data: text, Mode: 0o444}
			return err
		})
		if err != nil {
			return refused{err}
		}
	}
	return joined
}

// Paths returns folders and files, such as "../../config/rbac/role.yaml", relative to the folder of the test. One that does not exist is
// refused when it is read.
func Paths(places ...string) fs.FS {
	var all []fs.FS
	for _, place := range places {
		f, err := fileOrFolder(place)
		if err != nil {
			folder, _ := os.Getwd() // else the path alone has to do
			return refused{fmt.Errorf("fault.Paths: %w; give paths relative to the folder of the test, which is %s", err, folder)}
		}
		all = append(all, f)
	}
	return Files(all...)
}

// Manifests is a file system with the given text: YAML documents, such as what `helm template` prints. A document that is
// not empty and has no kind is refused when the file is read.
func Manifests(text string) fs.FS {
	if err := checkKinds(text); err != nil {
		return refused{err}
	}
	return fstest.MapFS{"manifests.yaml": &fstest.MapFile{Data: []byte(text), Mode: 0o444}}
}

// refused is a file system that cannot be read.
type refused struct{ error }

// Open returns why.
func (r refused) Open(string) (fs.File, error) { return nil, r.error }

// checkKinds finds documents that are no objects. What is no YAML is found later.
func checkKinds(text string) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	document, err := reader.Read()
	for n := 1; err == nil; n++ {
		if content, is := kindless(document); is {
			return sandbox.MisuseError(fmt.Sprintf("fault.Manifests: document %d has no kind: %s; give whole objects, each after a line with ---", n, content))
		}
		document, err = reader.Read()
	}
	return nil
}

// kindless reports whether a document has content but no kind, and how the content begins.
func kindless(document []byte) (string, bool) {
	var content any
	if yaml.Unmarshal(document, &content) != nil || content == nil {
		return "", false
	}
	object, _ := content.(map[string]any)
	if kind, _ := object["kind"].(string); kind != "" {
		return "", false
	}
	text, _ := json.Marshal(content) // it was read from YAML
	return beginning(string(text)), true
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
		f, err := fileOrFolder(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			t.Fatalf("fault.Module: module %s has no folder or file %q; it would be %s", module, place, at)
		case err != nil:
			t.Fatalf("fault.Module: %v", err)
		}
		all = append(all, f)
	}
	return Files(all...)
}

// fileOrFolder is a file system of a folder, or of one file.
func fileOrFolder(path string) (fs.FS, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return os.DirFS(path), nil
	}
	text, err := os.ReadFile(path)
	return fstest.MapFS{info.Name(): &fstest.MapFile{Data: text, Mode: 0o444}}, err
}

// moduleDir asks the go command where a module's files are.
func moduleDir(t testing.TB, module string) (string, error) {
	dir, err := asked(t, "list", "-m", "-f", "{{.Dir}}", module)
	failed := &exec.ExitError{}
	switch {
	case errors.As(err, &failed):
		if work := workspaceOfOthers(t); work != "" {
			return "", fmt.Errorf("the workspace %s does not use the module of this test; run the test with GOWORK=off, or add the module with go work use", work)
		}
		why, _, _ := strings.Cut(strings.TrimSpace(string(failed.Stderr)), "\n")
		return "", fmt.Errorf("this module does not require %s: %s; go get adds it", module, why)
	case err != nil:
		return "", fmt.Errorf("ask the go command where module %s is: %w", module, err)
	case dir == "":
		return "", fmt.Errorf("the go command does not say where module %s is; run go mod download, and do not test with -mod=vendor", module)
	}
	return dir, nil
}

// workspaceOfOthers is the go.work file in force if the module of the present folder is not in it; else it is empty.
func workspaceOfOthers(t testing.TB) string {
	work, err := asked(t, "env", "GOWORK")
	if err != nil || work == "" || work == "off" {
		return ""
	}
	own, err := asked(t, "env", "GOMOD")
	if err != nil || own == os.DevNull {
		return ""
	}
	used, err := asked(t, "list", "-m", "-f", "{{.GoMod}}")
	if err == nil && slices.Contains(strings.Split(used, "\n"), own) {
		return ""
	}
	return work
}

// asked is what the go command says.
func asked(t testing.TB, args ...string) (string, error) {
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	return strings.TrimSpace(string(out)), err
}
