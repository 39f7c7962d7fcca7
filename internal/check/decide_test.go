package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	all := []pkg{
		{ImportPath: "m", Dir: "/r", Imports: []string{"m/b"}},
		{ImportPath: "m/a", Dir: "/r/a", Imports: []string{"fmt"}},
		{ImportPath: "m/b", Dir: "/r/b", Imports: []string{"m/a"}, TestImports: []string{"m/kit"}},
		{ImportPath: "m/c", Dir: "/r/c", Imports: []string{"m/b"}},
		{ImportPath: "m/kit", Dir: "/r/kit"},
		{ImportPath: "m/d", Dir: "/r/d", XTestImports: []string{"m/a"}},
		{ImportPath: "m/e", Dir: "/r/e", XTestImports: []string{"m/c"}},
		{ImportPath: "m/internal/arch", Dir: "/r/internal/arch"},
	}
	tests := map[string]struct {
		why   string
		files []string
		want  work
	}{
		"nothing": {"there is nothing to do", nil, work{}},
		"a package": {
			"all that depends on it must compile, those next to it must work",
			[]string{"a/a.go", "a/a_test.go"},
			work{
				changed: []string{"m/a", "m/internal/arch"}, folders: []string{"./a"}, importers: []string{"m/d", "m/b"},
				affected: []string{"m", "m/a", "m/b", "m/c", "m/d", "m/e"},
			},
		},
		"a kit": {
			"those who use it in tests break, not those who import them",
			[]string{"kit/kit.go"},
			work{changed: []string{"m/kit", "m/internal/arch"}, folders: []string{"./kit"}, importers: []string{"m/b"}, affected: []string{"m/b", "m/kit"}},
		},
		"a test case": {
			"who reads it is the package around it",
			[]string{"e/testdata/x/y.txt"},
			work{changed: []string{"m/e", "m/internal/arch"}, folders: []string{"./e"}, affected: []string{"m/e"}},
		},
		"a document": {
			"it belongs to the repository",
			[]string{"docs/x.md"},
			work{changed: []string{"m", "m/internal/arch"}, folders: []string{"./."}, affected: []string{"m"}},
		},
		"a rule": {
			"it is tested once",
			[]string{"internal/arch/arch_test.go"},
			work{changed: []string{"m/internal/arch"}, folders: []string{"./internal/arch"}, affected: []string{"m/internal/arch"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, plan(all, "/r", tt.files), cmp.AllowUnexported(work{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}
