package testenv

import "path/filepath"

// guard answers where the binaries in assets are. Nothing guards them here: a test binary
// on Windows that uses envtest leaves them behind.
func guard(_, assets string) (func(name string) string, error) {
	return func(name string) string { return filepath.Join(assets, name+".exe") }, nil
}
