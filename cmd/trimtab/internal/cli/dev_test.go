package cli

import (
	"os"
	"strings"
	"testing"
)

// TestDevRefuses: what cannot be run is refused in one sentence that says what to do, and nothing is started.
func TestDevRefuses(t *testing.T) {
	tests := map[string]struct {
		why    string
		args   []string
		module bool
		want   string
	}{
		"no module":     {"there is nothing to build", nil, false, "no go.mod at or above "},
		"two packages":  {"an operator has one main package", []string{"./a", "./b"}, true, "2 packages are given; name the operator's main package, as in trimtab dev ./cmd/manager"},
		"no election":   {"an operator in the cluster would work on the same objects", []string{"--cluster", "current", "--", "--leader-elect", "--leader-elect=F"}, true, "--leader-elect=false with --cluster current: an operator that runs in the cluster and this one"},
		"other cluster": {"it is misspelt", []string{"--cluster", "kind"}, true, `--cluster "kind" is not known; use embedded or current`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("TMPDIR", t.TempDir())
			if tt.module {
				if err := os.WriteFile("go.mod", []byte("module example.com/widgets\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, _, errOut := runCLI(t.Context(), append([]string{"dev"}, tt.args...)...)
			if code != 1 || !strings.Contains(errOut, tt.want) || strings.Count(errOut, "\n") != 1 {
				t.Errorf("%s: exit code %d, it says %q, want %q", tt.why, code, errOut, tt.want)
			}
			if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
