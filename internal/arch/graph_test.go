package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGraph lists the modules that users' operators link for importing us. One more is a
// decision: accept it with -update and say in ARCHITECTURE.md what it is for.
func TestGraph(t *testing.T) {
	var got strings.Builder
	listed := map[string]bool{}
	for _, name := range []string{"trace", "api", "loop", "external", "operator"} {
		got.WriteString(name + " adds\n")
		for _, m := range linked(t, "./"+name) {
			if !listed[m] {
				got.WriteString("\t" + m + "\n")
			}
			listed[m] = true
		}
	}
	golden := filepath.Join("testdata", "graph.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("modules linked by importing us (-want +got):\n%s", diff)
	}
}

// TestGraphSeesThrough proves that a module is listed that no package of ours imports
// itself: nats-server comes with golang.org/x/crypto.
func TestGraphSeesThrough(t *testing.T) {
	got := linked(t, "./internal/natsserver")
	for _, want := range []string{"github.com/nats-io/nats-server/v2", "golang.org/x/crypto"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
}

// linked returns the modules of all packages that one of the root module's packages needs.
func linked(t *testing.T, pattern string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", pattern)
	cmd.Dir = repository
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", pattern, err)
	}
	return sorted(strings.Fields(string(out)))
}
