package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trimtab-dev/trimtab/internal/gobuild"
)

// envMain makes this test binary behave as trimtab.
const envMain = "TRIMTAB_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// stubborn is a control plane that never becomes ready, but ends with its parent.
const stubborn = "#!/bin/sh\ncat >/dev/null\n"

func TestCtrlC(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "devcluster")
	if err := os.WriteFile(binary, []byte(stubborn), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, sig := range map[string]syscall.Signal{"Ctrl-C": syscall.SIGINT, "kill": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			tmp, cache := t.TempDir(), t.TempDir()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "cluster", "up")
			cmd.Env = append(cmd.Environ(), envMain+"=1", "TRIMTAB_DEVCLUSTER="+binary, "TMPDIR="+tmp, "XDG_CACHE_HOME="+cache)
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stderr)
			if !lines.Scan() {
				t.Fatal("no line before the control plane is ready")
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			last := ""
			for lines.Scan() {
				last = lines.Text()
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if want := "trimtab: interrupted; nothing is left behind"; last != want {
				t.Errorf("last line %q, want %q", last, want)
			}
			for _, pattern := range []string{filepath.Join(tmp, "*"), filepath.Join(cache, "trimtab", "cluster", "*")} {
				left, err := filepath.Glob(pattern)
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(left, " "); got != "" && filepath.Base(got) != "lock" {
					t.Errorf("left behind: %s", got)
				}
			}
		})
	}
}

// TestPlugin: under the name of a plugin, the program speaks of itself as kubectl does.
func TestPlugin(t *testing.T) {
	t.Parallel()
	plugin := filepath.Join(t.TempDir(), "kubectl-trimtab")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", plugin, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), plugin, "why", "--help").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "kubectl trimtab why KIND/NAME [flags]") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLint: the binary runs go vet with itself, and checks CRDs.
func TestLint(t *testing.T) {
	gobuild.Reads(t, "testdata")
	gobuild.Builds(t, "", "./testdata/clean")
	dir := t.TempDir()
	trimtab := filepath.Join(dir, "trimtab") // with the race detector, it would take minutes
	// go vet must not know this tool: a cache that lost what a tool found is taken for one where it found nothing.
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-buildid="+dir, "-o", trimtab, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: shops.example.org}\nspec:\n  versions:\n" +
		"  - name: v1\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            type: object\n" +
		"            properties:\n              poolRef: {type: string}\n"
	if err := os.WriteFile(filepath.Join(dir, "template.yaml"), []byte("{{ if .x }}\na: b: c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "shops.yaml"), []byte("kind: List\n---\n"+crd), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	for name, text := range map[string]string{"a.yaml": "{{ if .x }}\nkind: CustomResourceDefinition\n", "b.yaml": crd} {
		if err := os.WriteFile(filepath.Join(broken, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		why  string
		args []string
		code int
		want string
	}{
		"code":          {why: "a finding fails", args: []string{"./testdata/wrong"}, code: 1, want: "which is no analyzer"},
		"clean":         {why: "without findings nothing is printed", args: []string{"./testdata/clean"}},
		"CRDs":          {why: "a finding fails", args: []string{"--crds", dir, "./testdata/clean"}, code: 1, want: "spec.poolRef takes texts that are no name"},
		"excepted":      {why: "somebody says so", args: []string{"--crds", dir, "--except", "shops.example.org:spec.poolRef", "./testdata/clean"}},
		"needless":      {why: "it hides the next one", args: []string{"--crds", dir, "--except", "shops.example.org:spec.x", "./testdata/clean"}, code: 1, want: "spec.x needs no exception"},
		"nobody's":      {why: "it is misspelt", args: []string{"--crds", dir, "--except", "shop.example.org:spec.poolRef", "./testdata/clean"}, code: 1, want: "no CRD in " + dir + " is called shop.example.org"},
		"no path":       {why: "it says which field", args: []string{"--crds", dir, "--except", "poolRef", "./testdata/clean"}, code: 1, want: "use NAME-OF-CRD:PATH"},
		"a broken file": {why: "others are checked", args: []string{"--crds", broken, "./testdata/clean"}, code: 1, want: "b.yaml: CRD shops.example.org, version v1: spec.poolRef"},
		"said so":       {why: "it is not checked", args: []string{"--crds", broken, "./testdata/clean"}, code: 1, want: "a.yaml: not checked"},
		"no tags":       {why: "a file is left out", args: []string{"./testdata/tagged"}},
		"tags":          {why: "it is not", args: []string{"--tags", "x,y", "./testdata/tagged"}, code: 1, want: "behind.go:7:1: trimtab:allow names"},
		"no CRDs":       {why: "a wrong folder is not taken for a clean one", args: []string{"--crds", t.TempDir(), "./testdata/clean"}, code: 1, want: "no CRD is in"},
		"no folder":     {why: "a misspelt one neither", args: []string{"--crds", filepath.Join(dir, "x"), "./testdata/clean"}, code: 1, want: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), trimtab, append([]string{"lint"}, tc.args...)...)
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(string(out), tc.want) || tc.code == 0 && len(out) > 0 {
				t.Errorf("%s: exit code %d, %v, want %d; it printed\n%s", tc.why, code, err, tc.code, out)
			}
		})
	}
}
