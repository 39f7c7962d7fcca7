package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKept proves that no result is kept of a test that may depend on what go test does not know.
func TestKept(t *testing.T) {
	t.Parallel()
	own, other := &struct{ Main bool }{true}, &struct{ Main bool }{}
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
	}
	if diff := cmp.Diff([]string{"m/pure"}, kept(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHere asks the go command about packages of this project.
func TestHere(t *testing.T) {
	t.Parallel()
	all, err := list(t.Context(), []string{"../guard", "../controlplane", "../../testenv", "../../children"})
	if err != nil {
		t.Fatal(err)
	}
	if got := kept(all); !slices.Equal(got, []string{"github.com/trimtab-dev/trimtab/internal/guard"}) {
		t.Errorf("got %v, want internal/guard: the others start programs", got)
	}
}

// TestNoPackage wants a way out.
func TestNoPackage(t *testing.T) {
	t.Parallel()
	if _, err := list(t.Context(), nil); err == nil || err.Error() != "no package is given; write: kept PACKAGES" {
		t.Errorf("got %v", err)
	}
}
