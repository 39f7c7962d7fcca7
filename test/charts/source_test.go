package charts_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// place returns the folder of a chart on this machine.
func (c chart) place(t *testing.T) string {
	t.Helper()
	if c.module != "" {
		return filepath.Join(moduleFolder(t, c.module, c.requiredBy), filepath.FromSlash(c.folder))
	}
	return filepath.Join(checkout(t, c.repository, c.commit, c.folder), filepath.FromSlash(c.folder))
}

// moduleFolder returns the folder of a module in the cache, into which it is downloaded if it is not there. Its version
// and its checksum are those of the module that requires it.
func moduleFolder(t *testing.T, module, requiredBy string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = filepath.Join("..", "..", filepath.FromSlash(requiredBy))
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	text, err := cmd.Output()
	var m struct{ Dir, Error string }
	if broken := json.Unmarshal(text, &m); broken != nil || m.Dir == "" {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			text = exit.Stderr
		}
		t.Fatalf("download %s, which %s/go.mod requires: %v %s%s", module, requiredBy, err, m.Error, text)
	}
	return m.Dir
}

// repositories names a folder with clones of public repositories, as OWNER/NAME.
const repositories = "TRIMTAB_CHARTS"

// checkout returns a folder with a folder of a commit.
func checkout(t *testing.T, repository, commit, folder string) string {
	t.Helper()
	root := os.Getenv(repositories)
	if root == "" {
		t.Skipf("set %s to a folder that has a clone of %s, as OWNER/NAME", repositories, repository)
	}
	cmd := exec.CommandContext(t.Context(), "git", "-C", filepath.Join(root, filepath.FromSlash(repository)), "archive", "--format=tar", commit, folder)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("read %s of %s at %s: %v: %s", folder, repository, commit, err, complaint.Bytes())
	}
	out := t.TempDir()
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		unpack(t, filepath.Join(out, filepath.FromSlash(h.Name)), h, r)
	}
}

func unpack(t *testing.T, name string, h *tar.Header, r io.Reader) {
	t.Helper()
	if h.Typeflag != tar.TypeReg {
		return
	}
	text, err := io.ReadAll(r)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err == nil {
		err = os.WriteFile(name, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
