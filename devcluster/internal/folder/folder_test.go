package folder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpenKeepsWhatIsInside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "data")
	f := open(t, path)
	if f.Temporary() {
		t.Error("a named folder calls itself temporary")
	}
	if err := f.Write("port", []byte("1234")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	again := open(t, path)
	got, err := os.ReadFile(again.Join("port"))
	if err != nil || string(got) != "1234" {
		t.Errorf("read what the first owner wrote: %q, %v", got, err)
	}
	if left := names(t, path); !cmp.Equal(left, []string{"lock", "port"}) {
		t.Errorf("files in the folder: %v", left)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	held := open(t, filepath.Join(dir, "held"))

	for name, tc := range map[string]struct {
		why, path string
		says      []string
	}{
		"in use": {
			why:  "two control planes on one etcd folder destroy it",
			path: held.Path(),
			says: []string{held.Path(), "in use by process", "another folder"},
		},
		"below a file": {
			why:  "the reason and the way out must be there",
			path: filepath.Join(file, "data"),
			says: []string{"not a directory", "use a writable folder"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(tc.path)
			if err == nil {
				t.Fatalf("opened %q; %s", tc.path, tc.why)
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q; %s", err, part, tc.why)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q has several lines", err)
			}
		})
	}
}

func TestTempIsRemoved(t *testing.T) {
	parent := t.TempDir()
	f, err := Temp(parent)
	if err != nil {
		t.Fatal(err)
	}
	if !f.Temporary() {
		t.Error("a temporary folder does not call itself so")
	}
	if err := f.Write("etcd", []byte("data")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if left := names(t, parent); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestTempSweepsOnlyTheDead(t *testing.T) {
	parent := t.TempDir()
	alive, err := Temp(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	dead, err := temp(parent)
	if err != nil {
		t.Fatal(err)
	}
	// A process that is killed closes its files and removes nothing.
	if err := dead.lock.Close(); err != nil {
		t.Fatal(err)
	}
	starting, foreign := filepath.Join(parent, newborn+"1"), filepath.Join(parent, prefix+"notes")
	for _, dir := range []string{starting, foreign} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}

	fresh, err := Temp(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	for path, want := range map[string]bool{
		alive.Path(): true, starting: true, foreign: true, fresh.Path(): true, dead.Path(): false,
	} {
		_, err := os.Stat(path)
		if there := !errors.Is(err, os.ErrNotExist); there != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(path), there, want)
		}
	}
}

func open(t *testing.T, path string) *Folder {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.lock.Close() })
	return f
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
