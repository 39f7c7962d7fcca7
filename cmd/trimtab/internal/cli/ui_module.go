package cli

import (
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// moduleAt returns the path of the module that a folder is in; empty if it is in none.
func moduleAt(folder string) string {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return ""
	}
	for {
		if text, err := os.ReadFile(filepath.Join(folder, "go.mod")); err == nil {
			return modfile.ModulePath(text)
		}
		above := filepath.Dir(folder)
		if above == folder {
			return ""
		}
		folder = above
	}
}
