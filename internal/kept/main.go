// Command kept prints the packages whose test results go test may keep, because it knows all that a result depends on: what is linked
// into the tests, the environment variables that they ask for, and the times of the files that they read in their module. As long as
// nothing of it changes, it does not run them again.
//
// It does not know what another program does that a test starts, unless the test tells it, as few do. So kept looks at what a test binary
// links of this project: a package of it that imports os/exec or golang.org/x/tools/go/packages can start a program, and so can a test
// that reaches it. A control plane is no such program, if TRIMTAB_DEVCLUSTER names it: its path has a digest of its sources. Tests outside
// the project's main module that build programs need the link of internal/gobuild.
//
//	go run ./internal/kept ./...
//
// With -all it prints nothing, and fails if the result of one of the packages must not be kept.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/internal/gobuild"
)

func main() {
	every := flag.Bool("all", false, "fail if a package is not kept")
	flag.Parse()
	err := run(os.Stdout, *every, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "kept:", err)
		os.Exit(1)
	}
}

// run prints what is kept of the packages, or looks that it is all of them.
func run(out io.Writer, every bool, patterns []string) error {
	all, err := list(context.Background(), patterns)
	if err != nil {
		return err
	}
	paths, others := kept(all)
	if every {
		if len(others) > 0 {
			return fmt.Errorf("tests of %s can start programs that go test does not know: run them with -shuffle=on", strings.Join(others, ", "))
		}
		return nil
	}
	for _, path := range paths {
		fmt.Fprintln(out, path)
	}
	return nil
}

// listed is what go list says of a package. The test binary of package p is called p.test, and what was compiled for it "q [p.test]".
type listed struct {
	ImportPath string
	Dir        string
	Imports    []string
	Module     *owner // nil for the standard library
}

// owner is the module of a package. Main ones are of this project.
type owner struct {
	Path string
	Main bool
}

// ours tells packages of this project from others.
func (p listed) ours() bool { return p.Module != nil && p.Module.Main }

// list is what go list says of the packages, their test binaries, and all that these import.
func list(ctx context.Context, patterns []string) (all []listed, err error) {
	if len(patterns) == 0 {
		return nil, errors.New("no package is given; write: kept PACKAGES")
	}
	args := append([]string{"list", "-test", "-deps", "-json=ImportPath,Dir,Imports,Module"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
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

// kept are the packages whose tests start nothing that go test does not know, and the others, both in the order of all.
func kept(all []listed) (paths, others []string) {
	byPath := make(map[string]listed, len(all))
	for _, p := range all {
		byPath[p.ImportPath] = p
	}
	starts := reaching(byPath, func(p listed) bool {
		return !harmless(p) && slices.ContainsFunc(p.Imports, func(path string) bool { return slices.Contains(starters(), path) })
	})
	builds := reaching(byPath, func(p listed) bool { return p.ImportPath == module+"/internal/gobuild" })
	for _, p := range all {
		path, isTest := strings.CutSuffix(p.ImportPath, ".test")
		seen := !starts(p) || builds(p) && tells(path)
		switch {
		case !isTest:
		case seen && (!builds(p) || p.Module.Path == module || linked(p)):
			paths = append(paths, path)
		default:
			others = append(others, path)
		}
	}
	return paths, others
}

// tells reports whether the tests of a package, by internal/gobuild, tell go test what is read by the programs that they start.
func tells(path string) bool {
	return slices.Contains([]string{
		"cmd/trimtab", "cmd/trimtab/internal/cli", "cmd/trimtab/internal/dev", "cmd/trimtab/internal/replay",
	}, strings.TrimPrefix(path, module+"/"))
}

// reaching tells of a package whether it, or a package of this project that it imports, is one of those.
func reaching(byPath map[string]listed, those func(listed) bool) func(listed) bool {
	known := map[string]bool{}
	var reaches func(p listed) bool
	reaches = func(p listed) bool {
		if _, ok := known[p.ImportPath]; !ok && p.ours() {
			known[p.ImportPath] = those(p) || slices.ContainsFunc(p.Imports, func(path string) bool { return reaches(byPath[path]) })
		}
		return known[p.ImportPath]
	}
	return reaches
}

// linked reports whether the folder of a package has the link by which go test sees files of other modules.
func linked(p listed) bool {
	_, err := os.Lstat(filepath.Join(p.Dir, gobuild.Link))
	return err == nil
}

// starters are the packages by which a program is started. Other modules that import os/exec, as client-go for credentials, do not
// count: this project's tests do not ask them to.
func starters() []string { return []string{"os/exec", "golang.org/x/tools/go/packages"} }

// harmless reports whether a package that can start programs starts no other than these: the control plane that TRIMTAB_DEVCLUSTER
// names, the test binary itself, or the go command, if go test knows what that reads.
func harmless(p listed) bool {
	path := strings.TrimPrefix(p.ImportPath, module+"/")
	pkg, _, _ := strings.Cut(path, " [")                                                   // what was compiled once more for a test
	return slices.Contains([]string{"internal/controlplane", "internal/gobuild"}, path) || // but not for their own tests
		slices.Contains([]string{
			"external/simcloud", "operator_test", "kubesim_test", // start the test binary
			"kubesim/fault",                           // and asks where modules are
			"test/devcluster_test",                    // starts kubectl, too, which internal/gobuild has built
			"component_test", "operator/operatortest", // what internal/gobuild has built
			"test/fault", // itself, with mutants in files that it has read
		}, pkg)
}

const module = "github.com/trimtab-dev/trimtab"
