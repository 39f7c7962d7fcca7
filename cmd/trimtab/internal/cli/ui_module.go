package cli

import (
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// modulePath returns the path of the module that a folder is in; empty if it is in none.
func modulePath(folder string) string {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return ""
	}
	root, err := moduleAbove(folder)
	if err != nil {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return ""
	}
	return modfile.ModulePath(text)
}
