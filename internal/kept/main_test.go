package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/internal/gobuild"
)

// TestKept proves that no result is kept of a test that may depend on what go test does not know.
func TestKept(t *testing.T) {
	t.Parallel()
	own, other := &owner{"m", true}, &owner{"client-go", false}
	linked := t.TempDir()
	if err := os.MkdirAll(filepath.Join(linked, gobuild.Link), 0o700); err != nil {
		t.Fatal(err)
	}
	const builder = module + "/internal/gobuild"
	all := []listed{
		{ImportPath: "os/exec"},
		{ImportPath: "client-go", Imports: []string{"os/exec"}, Module: other},
		{ImportPath: "m/server", Imports: []string{"os/exec"}, Module: own},
		{ImportPath: "m/pure", Imports: []string{"client-go"}, Module: own},
		{ImportPath: "m/pure.test", Imports: []string{"m/pure"}, Module: own},
		{ImportPath: "m/far", Imports: []string{"m/pure"}, Module: own},
		{ImportPath: "m/far_test [m/far.test]", Imports: []string{"m/pure", "m/testenv"}, Module: own},
		{ImportPath: "m/testenv", Imports: []string{"m/server"}, Module: own},
		{ImportPath: "m/far.test", Imports: []string{"m/far", "m/far_test [m/far.test]"}, Module: own},
		{ImportPath: "m/lists", Imports: []string{"golang.org/x/tools/go/packages"}, Module: own},
		{ImportPath: "m/lists.test", Imports: []string{"m/lists"}, Module: own},
		{ImportPath: "m/untested", Module: own},
		{ImportPath: builder, Imports: []string{"os/exec"}, Module: &owner{module, true}},
		{ImportPath: "m/builds.test", Imports: []string{builder}, Module: own, Dir: linked},
		{ImportPath: "m/unlinked.test", Imports: []string{builder}, Module: own, Dir: t.TempDir()},
		{ImportPath: module + "/near.test", Imports: []string{builder}, Module: &owner{module, true}},
	}
	paths, others := kept(all)
	if diff := cmp.Diff([][]string{{"m/pure", "m/builds", module + "/near"}, {"m/far", "m/lists", "m/unlinked"}}, [][]string{paths, others}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHere asks the go command about packages of this project: some that start nothing, a control plane, or themselves, and others.
func TestHere(t *testing.T) {
	t.Parallel()
	yes := []string{"children", "cmd/trimtab/internal/cli", "component", "external/simcloud", "internal/guard", "samples/folder"}
	no := []string{"cmd/trimtab/internal/child", "internal/controlplane", "internal/gobuild", "lint"}
	var patterns []string
	for _, path := range slices.Concat(yes, no) {
		patterns = append(patterns, module+"/"+path)
	}
	var out strings.Builder
	if err := run(&out, false, patterns); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, path := range yes {
		want.WriteString(module + "/" + path + "\n")
	}
	if diff := cmp.Diff(want.String(), out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := run(&out, true, patterns[:len(yes)]); err != nil {
		t.Errorf("kept -all of what is kept: %v", err)
	}
	err := run(&out, true, patterns)
	if want := module + "/" + strings.Join(no, ", "+module+"/"); err == nil || !strings.Contains(err.Error(), "tests of "+want+" can start programs") {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestNoPackage wants a way out.
func TestNoPackage(t *testing.T) {
	t.Parallel()
	if _, err := list(t.Context(), nil); err == nil || err.Error() != "no package is given; write: kept PACKAGES" {
		t.Errorf("got %v", err)
	}
}
