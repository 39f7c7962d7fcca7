package gobuild

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutput has go test keep the result of a test that builds a program, and not keep it any more when a file of the program changes,
// or a file is added.
func TestOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.ReadFile("gobuild.go")
	if err != nil {
		t.Fatal(err)
	}
	const workspace = "go 1.26\n\nuse (\n\t.\n\t./other\n\t./third\n)\n"
	write("go.work", workspace)
	write("third/go.mod", "module third\n\ngo 1.26\n")
	write("go.mod", "module m\n\ngo 1.26\n")
	write("gobuild/gobuild.go", string(self))
	write("program/main.go", "package main\n\nimport _ \"m/part\"\n\nfunc main() {}\n")
	write("part/part.go", "package part\n\nimport \"embed\"\n\n//go:embed in\nvar Text embed.FS\n")
	write("part/in/text", "one")
	const test = `package builds

import (
	"path/filepath"
	"testing"

	"m/gobuild"
)

func TestBuilds(t *testing.T) {
	if out, err := gobuild.Output(t, "m/program", "-o", filepath.Join(t.TempDir(), "program")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	gobuild.Builds(t, "", "m/tested")
	gobuild.Reads(t, "testdata/read")
}
`
	write("builds/builds_test.go", test)
	write("builds/testdata/read/text", "")
	write("other/builds/testdata/read/text", "")
	write("tested/tested.go", "package tested\n")
	write("tested/tested_test.go", "package tested\n\nimport _ \"m/deep\"\n")
	write("deep/deep.go", "package deep\n")
	write("deep/deep_test.go", "package deep\n")
	write("other/go.mod", "module other\n\ngo 1.26\n")
	write("other/builds/builds_test.go", test)
	write("other/builds/testdata/text", "")
	if err := os.Symlink("../../..", filepath.Join(dir, "other/builds", Link)); err != nil {
		t.Fatal(err)
	}
	run := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "m/builds", "other/builds")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=", "GOFLAGS=")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	kept := func() int {
		t.Helper()
		out, err := run()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Count(out, "(cached)")
	}
	kept()
	if n := kept(); n != 2 {
		t.Errorf("%d results of 2 are kept, although nothing has changed", n)
	}
	write("part/part_test.go", "package part\n")
	kept()
	for _, name := range []string{"part/part_test.go", "deep/deep_test.go"} {
		write(name, "package "+filepath.Dir(name)+"\n\n// another\n")
	}
	if n := kept(); n != 2 {
		t.Errorf("%d results of 2 are kept, although nothing but tests that nobody builds has changed", n)
	}
	for _, change := range []struct{ why, names, text string }{
		{"a file of the program", "program/main.go", "package main\n\nimport _ \"m/part\"\n\nfunc main() { println() }\n"},
		{"a new file of a package", "part/more.go", "package part\n"},
		{"an embedded file", "part/in/text", "two"},
		{"a new embedded file", "part/in/more", "three"},
		{"what a test needs that is built", "deep/deep.go", "package deep\n\n// another\n"},
		{"a file that is read", "builds/testdata/read/text other/builds/testdata/read/text", "two"},
		{"the version of another module", "go.mod", "module m\n\ngo 1.26\n\n// another\n"},
		{"the sums of other modules", "go.sum", "\n"},
		{"another module of the workspace", "third/go.mod", "module third\n\ngo 1.26\n\n// another\n"},
		{"the workspace", "go.work", workspace + "// another\n"},
	} {
		for name := range strings.FieldsSeq(change.names) {
			write(name, change.text)
		}
		if n := kept(); n != 0 {
			t.Errorf("%s has changed, and %d results are kept", change.why, n)
		}
	}
	if n := kept(); n != 2 {
		t.Errorf("%d results of 2 are kept after the last change", n)
	}
	write("program/main.go", "package main\n\nfunc main() { none() }\n")
	if out, err := run(); err == nil || !strings.Contains(out, "undefined: none") {
		t.Errorf("a program that does not compile: %v\n%s", err, out)
	}
}
