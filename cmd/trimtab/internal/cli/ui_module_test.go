package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// TestModulePath: the dashboard knows the module of the folder that it was started in, or below which.
func TestModulePath(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	below := filepath.Join(root, "api", "v1")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := modulePath(below); got != "" {
		t.Errorf("without go.mod: %q", got)
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("// a comment\nmodule example.com/widgets\n\ngo 1.26.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{root, below} {
		if got := modulePath(folder); got != "example.com/widgets" {
			t.Errorf("in %s: %q", folder, got)
		}
	}
}
