package kindgen

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Files maps slash-separated paths, relative to a root, to contents. Nil means that the file must not exist.
type Files map[string][]byte

// Stale returns the sorted paths below root whose content differs from want.
func Stale(root string, want Files) ([]string, error) {
	var paths []string
	for _, path := range slices.Sorted(maps.Keys(want)) {
		have, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if (want[path] == nil) != (err != nil) || !bytes.Equal(have, want[path]) {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// Report is an error that names the stale files and says with which command to write them; nil if there are none.
func Report(stale []string, command string) error {
	if len(stale) == 0 {
		return nil
	}
	errs := make([]error, 0, len(stale))
	for _, path := range stale {
		errs = append(errs, fmt.Errorf("%s is not current", path))
	}
	return fmt.Errorf("%w\nrun %s and commit what it changes", errors.Join(errs...), command)
}

// Write writes, or removes, the stale files among want.
func Write(root string, want Files, stale []string) error {
	for _, path := range stale {
		if err := WriteFile(filepath.Join(root, filepath.FromSlash(path)), want[path]); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes a file and the folders that it is in, or removes the file if content is nil.
func WriteFile(path string, content []byte) error {
	if content == nil {
		return os.Remove(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // source code is for everybody
		return err
	}
	return os.WriteFile(path, content, 0o644) //nolint:gosec // source code is for everybody
}
