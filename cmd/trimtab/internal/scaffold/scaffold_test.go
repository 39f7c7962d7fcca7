package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestGoMod: the module requires the trimtab that it was made with.
func TestGoMod(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why     string
		project Project
		want    string // the version, and what replaces it
	}{
		"released":          {"it is published", Project{Version: "v0.3.1"}, "v0.3.1 "},
		"a checkout":        {"it has no version", Project{Version: "v0.0.0", Replace: "/src/trimtab"}, "v0.0.0 /src/trimtab"},
		"with spaces in it": {"go.mod needs quotes", Project{Version: "v0.0.0", Replace: "/my src/trimtab"}, "v0.0.0 /my src/trimtab"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := tt.project
			p.Name, p.Kind, p.Form = "widgets", "Widget", External
			files, err := p.Complete().files()
			if err != nil {
				t.Fatal(err)
			}
			mod, err := modfile.Parse("go.mod", files["go.mod"], nil)
			if err != nil {
				t.Fatal(err)
			}
			got := mod.Require[0].Mod.Version + " "
			for _, r := range mod.Replace {
				got += r.New.Path
			}
			if got != tt.want || mod.Module.Mod.Path != "example.com/widgets" || len(mod.Tool) != 1 || mod.Tool[0].Path != Trimtab+"/cmd/trimtab" {
				t.Errorf("%s: %q, want %q in a module example.com/widgets with the tool trimtab:\n%s", tt.why, got, tt.want, files["go.mod"])
			}
		})
	}
}

// TestGrants: an operator may create the roles of a chart, and asks for the permission only if there are any.
func TestGrants(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{"Role": true, "ClusterRole": true, "RoleBinding": false, "ConfigMap": false} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			chart := t.TempDir()
			inner := filepath.Join(chart, "charts", "inner", "templates")
			if err := os.MkdirAll(inner, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(inner, "a.yaml"), []byte("apiVersion: v1\nkind: "+kind+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			files, err := Project{Name: "shops", Kind: "Shop", Form: Component, Chart: chart}.Complete().files()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(files["main.go"]), `"escalate"`); got != want {
				t.Errorf("main.go asks for the verb escalate: %t, want %t", got, want)
			}
		})
	}
}
