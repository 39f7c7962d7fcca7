// Command gen writes what is generated in this repository: deep copies, CRDs and the methods of components of
// the API packages, the code that documents show, dashboard and alerts, the list of what each public package exports
// (api.txt), and copies of code that cannot be imported. With -check it writes nothing and fails
// if a file is not what gen would have written.
//
//	go run ./internal/gen
//	go run ./internal/gen -check
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/trimtab-dev/trimtab/internal/kindgen"
)

// files maps slash-separated paths, relative to the root of the repository, to contents. Nil means that the
// file must not exist.
type files = kindgen.Files

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
	want, err := kindgen.Module(ctx, root, append(os.Environ(), "GOWORK=off"))
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
	stale, err := kindgen.Stale(root, want)
	if err != nil {
		return err
	}
	if check {
		return kindgen.Report(stale, "make gen")
	}
	if err := kindgen.Write(root, want, stale); err != nil {
		return err
	}
	for _, path := range stale {
		fmt.Println(path)
	}
	return nil
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
