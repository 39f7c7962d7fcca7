package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

// TestTally holds what is printed against what go test prints of the same packages.
func TestTally(t *testing.T) {
	t.Parallel()
	const report = "\nseconds  packages\n\nseconds  slowest tests\n"
	tests := map[string]struct {
		why, events, want string
	}{
		"passes": {
			why: "who reads the output looks for what is wrong",
			events: `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestA"}
{"Action":"output","Package":"m/a","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"m/a","Test":"TestA","Output":"    a_test.go:3: all is well\n"}
{"Action":"pass","Package":"m/a","Test":"TestA","Elapsed":1.5}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t2.000s\n"}
{"Action":"pass","Package":"m/a","Elapsed":2}
{"Action":"output","Package":"m/b","Output":"?   \tm/b\t[no test files]\n"}
{"Action":"skip","Package":"m/b","Elapsed":0}
`,
			want: "ok  \tm/a\t2.000s\n?   \tm/b\t[no test files]\n\nseconds  packages\n    2.0  m/a\n\nseconds  slowest tests\n    1.5  m/a TestA\n",
		},
		"kept": {
			why: "times of an earlier run are not those of this one, and who reads it must know that nothing ran",
			events: `{"Action":"pass","Package":"m/a","Test":"TestA","Elapsed":1.5}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t(cached)\n"}
{"Action":"pass","Package":"m/a","Elapsed":2}
`,
			want: "ok  \tm/a\t(cached)\n" + report +
				"\nresults that were kept, because nothing that they depend on has changed: 1; go clean -testcache drops them\n",
		},
		"fails": {
			why: "what belongs to tests that passed would hide what does not",
			events: `{"Action":"output","Package":"m/a","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"m/a","Test":"TestA/one","Output":"=== RUN   TestA/one\n"}
{"Action":"output","Package":"m/a","Test":"TestA/two","Output":"=== RUN   TestA/two\n"}
{"Action":"output","Package":"m/a","Test":"TestA/one","Output":"    a_test.go:3: all is well\n"}
{"Action":"output","Package":"m/a","Test":"TestA/two","Output":"=== NAME  TestA/two\n"}
{"Action":"output","Package":"m/a","Test":"TestA/two","Output":"    a_test.go:4: want 2\n"}
{"Action":"output","Package":"m/a","Test":"TestA/two","Output":"=== a line of the test\n"}
{"Action":"output","Package":"m/a","Test":"TestA","Output":"--- FAIL: TestA (9.00s)\n"}
{"Action":"output","Package":"m/a","Test":"TestA/one","Output":"    --- PASS: TestA/one (4.00s)\n"}
{"Action":"pass","Package":"m/a","Test":"TestA/one","Elapsed":4}
{"Action":"output","Package":"m/a","Test":"TestA/two","Output":"    --- FAIL: TestA/two (5.00s)\n"}
{"Action":"fail","Package":"m/a","Test":"TestA/two","Elapsed":5}
{"Action":"fail","Package":"m/a","Test":"TestA","Elapsed":9}
{"Action":"output","Package":"m/a","Output":"FAIL\n"}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t9.100s\n"}
{"Action":"fail","Package":"m/a","Elapsed":9.1}
`,
			want: `--- FAIL: TestA (9.00s)
    a_test.go:4: want 2
=== a line of the test
    --- FAIL: TestA/two (5.00s)
FAIL
` + "FAIL\tm/a\t9.100s\n" + `
seconds  packages
    9.1  m/a

seconds  slowest tests
    5.0  m/a TestA/two
    4.0  m/a TestA/one
`,
		},
		"race": {
			why: "the report stands with another test than the one that fails for it",
			events: `{"Action":"output","Package":"m/a","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"m/a","Test":"TestA","Output":"WARNING: DATA RACE\n"}
{"Action":"output","Package":"m/a","Test":"TestA","Output":"Write at 0x01 by goroutine 7:\n"}
{"Action":"pass","Package":"m/a","Test":"TestA","Elapsed":1}
{"Action":"output","Package":"m/a","Test":"TestB","Output":"    testing.go:1: race detected during execution of test\n"}
{"Action":"fail","Package":"m/a","Test":"TestB","Elapsed":2}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t3.000s\n"}
{"Action":"fail","Package":"m/a","Elapsed":3}
`,
			want: "WARNING: DATA RACE\nWrite at 0x01 by goroutine 7:\n    testing.go:1: race detected during execution of test\nFAIL\tm/a\t3.000s\n" +
				"\nseconds  packages\n    3.0  m/a\n\nseconds  slowest tests\n    2.0  m/a TestB\n    1.0  m/a TestA\n",
		},
		"ends before its end": {
			why: "a test that panics has no last event, and what it printed says why",
			events: `{"Action":"output","Package":"m/a","Test":"TestA","Output":"panic: oh\n"}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t0.100s\n"}
{"Action":"fail","Package":"m/a","Elapsed":0.1}
{"Action":"output","Package":"m/b","Test":"TestB","Output":"=== RUN   TestB\n"}
`,
			want: "panic: oh\nFAIL\tm/a\t0.100s\nFAIL\tm/b\tits tests did not end\n" + report,
		},
		"does not compile": {
			why: "the compiler's words belong to no test",
			events: `{"ImportPath":"m/a","Action":"build-output","Output":"a.go:3:1: syntax error\n"}
{"ImportPath":"m/a","Action":"build-fail"}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a [build failed]\n"}
{"Action":"fail","Package":"m/a","Elapsed":0,"FailedBuild":"m/a"}
go: warning
`,
			want: "a.go:3:1: syntax error\nFAIL\tm/a [build failed]\ngo: warning\n" + report,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			all := &tally{out: &out}
			for line := range strings.Lines(tt.events) {
				all.line("go test", line)
			}
			all.report()
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

// TestPlace: the results of tests on the shared control plane can be kept, because its kubeconfig has the same path in the next run.
func TestPlace(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(controlplane.EnvBinary, "/one")
	take := func() (string, *os.File) {
		t.Helper()
		kubeconfig, lock, err := place()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lock.Close() })
		return kubeconfig, lock
	}
	first, lock := take()
	beside, _ := take()
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	second, _ := take()
	t.Setenv(controlplane.EnvBinary, "/other")
	other, _ := take()
	if second != first || beside != "" || other == first {
		t.Errorf("first %s, beside it %s, after it %s, with another control plane %s", first, beside, second, other)
	}
}

// TestRun runs the tests of a module with go test: more commands than run at a time.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":              "module m\n",
		"good/good_test.go":   "package good\n\nimport \"testing\"\n\nfunc TestA(*testing.T) {}\n",
		"worse/worse_test.go": "package worse\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Error(\"as it must\") }\n",
		"bad/bad_test.go":     "package bad\n\nfunc TestA( {}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	of := func(pkg string) []string {
		return []string{"env", "GOWORK=off", "go", "-C", dir, "test", "-json", "-vet=off", "m/" + pkg}
	}
	tests := map[string]struct {
		why      string
		packages []string
		fails    bool
		want     []string
	}{
		"good":           {"nothing is wrong", []string{"good"}, false, []string{"ok  \tm/good\t"}},
		"one is bad":     {"the others do not make up for it", []string{"good", "worse"}, true, []string{"ok  \tm/good\t", "--- FAIL: TestA", "as it must", "FAIL\tm/worse\t", "\nFAIL\n"}},
		"does not parse": {"no test of it runs", []string{"bad"}, true, []string{"expected ')'", "FAIL\tm/bad [setup failed]", "\nFAIL\n"}},
		"no package":     {"nothing is tested", []string{"none"}, true, []string{"\nFAIL\n"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			commands := [][]string{of(tt.packages[0]), append(of(tt.packages[0]), "-count=1"), of(tt.packages[len(tt.packages)-1])}
			var out strings.Builder
			if err := run(t.Context(), &out, nil, commands); (err != nil) != tt.fails {
				t.Errorf("%s: %v, want an error: %v", tt.why, err, tt.fails)
			}
			for _, text := range tt.want {
				if !strings.Contains(out.String(), text) {
					t.Errorf("%s: nothing says %q:\n%s", tt.why, text, out.String())
				}
			}
		})
	}
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		var out strings.Builder
		commands := [][]string{{shared, "printenv", "MINE"}, {"sh", "-c", "echo not $MINE"}}
		if err := run(t.Context(), &out, []string{"MINE=yours"}, commands); err != nil {
			t.Error(err)
		}
		if text := out.String(); !strings.Contains(text, "yours\n") || !strings.Contains(text, "not\n") {
			t.Errorf("the environment of one command is that of others:\n%s", text)
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		if err := run(t.Context(), &strings.Builder{}, nil, split(nil)); err == nil {
			t.Error("a suite of nothing passes")
		}
	})
}
