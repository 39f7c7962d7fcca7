// Command kept prints the packages whose test results go test may keep: nothing of their tests can start another program, so go test
// knows all that a result depends on. As long as nothing of it changes, it does not run them again.
//
// It looks at what a test binary links of this project. A package of it that imports os/exec or golang.org/x/tools/go/packages can start
// a program, and so can a test that reaches it.
//
//	go run ./internal/kept ./...
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	all, err := list(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "kept:", err)
		os.Exit(1)
	}
	for _, path := range kept(all) {
		fmt.Println(path)
	}
}

// listed is what go list says of a package. The test binary of package p is called p.test, and what was compiled for it "q [p.test]".
type listed struct {
	ImportPath string
	Imports    []string
	Module     *struct{ Main bool } // nil for the standard library
}

// ours tells packages of this project from others.
func (p listed) ours() bool { return p.Module != nil && p.Module.Main }

// list is what go list says of the packages, their test binaries, and all that these import.
func list(ctx context.Context, patterns []string) (all []listed, err error) {
	if len(patterns) == 0 {
		return nil, errors.New("no package is given; write: kept PACKAGES")
	}
	args := append([]string{"list", "-test", "-deps", "-json=ImportPath,Imports,Module"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // whoever calls it says which packages
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for values := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := values.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}

// kept are the packages whose tests can start no program, in the order of all.
func kept(all []listed) (paths []string) {
	byPath := make(map[string]listed, len(all))
	for _, p := range all {
		byPath[p.ImportPath] = p
	}
	starts := map[string]bool{} // what is known already
	var reaches func(p listed) bool
	reaches = func(p listed) bool {
		if known, ok := starts[p.ImportPath]; ok || !p.ours() {
			return known
		}
		starts[p.ImportPath] = slices.ContainsFunc(p.Imports, func(path string) bool {
			return slices.Contains(starters(), path) || reaches(byPath[path])
		})
		return starts[p.ImportPath]
	}
	for _, p := range all {
		if path, isTest := strings.CutSuffix(p.ImportPath, ".test"); isTest && !reaches(p) {
			paths = append(paths, path)
		}
	}
	return paths
}

// starters are the packages by which a program is started. Other modules that import os/exec, as client-go for credentials, do not
// count: this project's tests do not ask them to.
func starters() []string { return []string{"os/exec", "golang.org/x/tools/go/packages"} }
