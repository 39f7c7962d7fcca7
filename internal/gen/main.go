// Command gen writes what is generated in this repository: deep copies, CRDs and the methods of components of
// the API packages, the code that documents show, dashboard and alerts, the list of what each public package exports
// (api.txt), and copies of code that cannot be imported. With -check it writes nothing and fails
// if a file is not what gen would have written.
//
//	go run ./internal/gen
//	go run ./internal/gen -check
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
)

// files maps slash-separated paths, relative to the root of the repository, to contents. Nil means that the
// file must not exist.
type files map[string][]byte

func main() {
	check := flag.Bool("check", false, "write nothing, fail if something is not current")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *check)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	want, err := kinds(ctx, root)
	if err != nil {
		return err
	}
	docs, err := documents(root)
	if err != nil {
		return err
	}
	lists, err := surfaces(root)
	if err != nil {
		return err
	}
	copied, err := copies(root)
	if err != nil {
		return err
	}
	monitors, err := monitoring()
	if err != nil {
		return err
	}
	maps.Copy(want, monitors)
	maps.Copy(want, docs)
	maps.Copy(want, copied)
	maps.Copy(want, lists)
	stale, err := differing(root, want)
	if err != nil {
		return err
	}
	if check {
		return report(stale)
	}
	return write(root, want, stale)
}

// findRoot returns the folder of the go.work file in the working directory or above it.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.work")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("no go.work at or above %s; run gen in the repository", dir)
		}
	}
}

// differing returns the sorted paths whose content differs from want.
func differing(root string, want files) ([]string, error) {
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

func report(stale []string) error {
	if len(stale) == 0 {
		return nil
	}
	errs := make([]error, 0, len(stale))
	for _, path := range stale {
		errs = append(errs, fmt.Errorf("%s is not current", path))
	}
	return fmt.Errorf("%w\nrun make gen and commit what it changes", errors.Join(errs...))
}

func write(root string, want files, stale []string) error {
	for _, path := range stale {
		if err := writeOne(filepath.Join(root, filepath.FromSlash(path)), want[path]); err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}

func writeOne(path string, content []byte) error {
	if content == nil {
		return os.Remove(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
