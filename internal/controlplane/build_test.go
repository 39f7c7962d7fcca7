package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// checkout writes a small module in the place of devcluster and answers its source.
func checkout(t *testing.T, main string) source {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "devcluster", "go.mod"), "module "+clusterModule+"\n\ngo 1.26\n")
	write(t, filepath.Join(root, "devcluster", "cmd", "devcluster", "main.go"), main)
	s, ok := sourceInCheckout(root)
	if !ok {
		t.Fatalf("no source in %q", root)
	}
	return s
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func newBuilder(cache string, progress Progress) builder {
	return builder{cache: cache, goTool: "go", meter: newMeter(progress, filepath.Join(cache, "progress.json"))}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

func TestBuildOnceForAll(t *testing.T) {
	src := checkout(t, "package main\n\nfunc main() { println(\"here\") }\n")
	cache := filepath.Join(t.TempDir(), "not", "yet", "there")
	var mu sync.Mutex
	built := 0
	var all sync.WaitGroup
	paths := make([]string, 8)
	for i := range paths {
		all.Go(func() {
			b := newBuilder(cache, func(s Step) {
				mu.Lock()
				defer mu.Unlock()
				if s.Phase == Built {
					built++
				}
			})
			var err error
			if paths[i], err = b.binary(t.Context(), src); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if built != 1 {
		t.Errorf("built %d times, want once", built)
	}
	for _, p := range paths {
		if p != paths[0] {
			t.Errorf("paths differ: %q and %q", p, paths[0])
		}
	}
	out, err := exec.CommandContext(t.Context(), paths[0]).CombinedOutput()
	if err != nil || string(out) != "here\n" {
		t.Errorf("the binary answers %q, %v", out, err)
	}
	want := []string{filepath.Base(filepath.Dir(paths[0])), "lock"}
	if diff := cmp.Diff(want, names(t, cache)); diff != "" {
		t.Errorf("left in the cache (-want +got):\n%s", diff)
	}
}

func TestInterruptedBuildLeavesNothing(t *testing.T) {
	src := checkout(t, "package main\n\nfunc main() {}\n")
	cache := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped by the test")
	b := newBuilder(cache, func(Step) { cancel(stopped) })
	if _, err := b.binary(ctx, src); !errors.Is(err, stopped) {
		t.Errorf("error is %v, want the cause of the interruption", err)
	}
	if diff := cmp.Diff([]string{"lock"}, names(t, cache)); diff != "" {
		t.Errorf("left in the cache (-want +got):\n%s", diff)
	}
	b = newBuilder(cache, nil)
	if _, err := b.binary(t.Context(), src); err != nil {
		t.Errorf("the next build: %v", err)
	}
}

func TestWaitersSeeWhatTheyWaitFor(t *testing.T) {
	cache := t.TempDir()
	builds, waits := newBuilder(cache, nil), Step{}
	unlock, err := builds.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	builds.meter.set(Compiling, 3, 7)
	builds.meter.publish(builds.meter.now())

	ctx, cancel := context.WithCancel(t.Context())
	b := newBuilder(cache, func(s Step) { waits = s; cancel() })
	if _, err := b.lock(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
	if got, want := waits.String(), "another process is compiling 3 of 7 packages, 0s"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// publish serves a module from files as a proxy would, and nothing else.
func publish(t *testing.T, src source, version string) {
	t.Helper()
	proxy := t.TempDir()
	at := filepath.Join(proxy, filepath.FromSlash(clusterModule), "@v", version)
	mod, err := os.ReadFile(filepath.Join(src.dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, at+".mod", string(mod))
	write(t, at+".info", fmt.Sprintf(`{"Version":%q}`, version))
	f, err := os.Create(at + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	err = zip.CreateFromDir(f, module.Version{Path: clusterModule, Version: version}, src.dir)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy))
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw") // so that it can be removed
}

func TestPublishedVersion(t *testing.T) {
	publish(t, checkout(t, "package main\n\nfunc main() { println(\"published\") }\n"), "v0.3.1")
	b := newBuilder(t.TempDir(), nil)
	path, err := b.binary(t.Context(), source{version: "v0.3.1"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path).CombinedOutput()
	if err != nil || string(out) != "published\n" {
		t.Errorf("the binary answers %q, %v", out, err)
	}
	_, err = b.binary(t.Context(), source{version: "v0.3.2"})
	if err == nil || !strings.Contains(err.Error(), "v0.3.2") || !strings.Contains(err.Error(), "GOPROXY") {
		t.Errorf("a version that is nowhere: %v, want which, and where it was looked for", err)
	}
}

func TestCountsWhatIsToCompile(t *testing.T) {
	src := checkout(t, "package main\n\nimport (\n\t_ \""+clusterModule+"/a\"\n\t_ \""+clusterModule+"/b\"\n)\n\nfunc main() {}\n")
	for _, name := range []string{"a", "b"} {
		// Nobody has compiled this text before.
		text := fmt.Sprintf("package %s\n\nconst Now = %d\n", name, time.Now().UnixNano())
		write(t, filepath.Join(src.dir, name, name+".go"), text)
	}
	m := newMeter(nil, filepath.Join(t.TempDir(), "progress.json"))
	tool, err := newGo(t.Context(), "go", src, t.TempDir(), m)
	if err != nil {
		t.Fatal(err)
	}
	count := func(want int) {
		t.Helper()
		if got, err := tool.stale(t.Context()); got != want || err != nil {
			t.Errorf("%d packages to compile, %v; want %d", got, err, want)
		}
	}
	count(2)
	if err := tool.build(t.Context(), filepath.Join(t.TempDir(), "out"), 2); err != nil {
		t.Fatal(err)
	}
	if got := m.now().Phase; got != Linking {
		t.Errorf("the last phase is %q, want %q", got, Linking)
	}
	count(0)
}

func TestSweep(t *testing.T) {
	cache := t.TempDir()
	now := time.Now()
	for i, name := range []string{"used-now", "used-before", "old", "older", "half-made" + unfinished} {
		dir := filepath.Join(cache, name)
		write(t, filepath.Join(dir, "devcluster"), "x")
		used := now.Add(-time.Duration(i) * time.Hour)
		if err := os.Chtimes(dir, used, used); err != nil {
			t.Fatal(err)
		}
	}
	b := newBuilder(cache, nil)
	if err := b.sweep(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"used-before", "used-now"}, names(t, cache)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// TestFullDisk: the message names the folders, and the variables by which others are chosen.
func TestFullDisk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the go command of this test is a shell script")
	}
	goTool := filepath.Join(t.TempDir(), "go")
	write(t, goTool, "#!/bin/sh\ncase \"$1\" in build) echo 'write /x/y: no space left on device' >&2; exit 1;; esac\nexec go \"$@\"\n")
	if err := os.Chmod(goTool, 0o755); err != nil {
		t.Fatal(err)
	}
	gocache := t.TempDir()
	t.Setenv("GOCACHE", gocache)
	cache := t.TempDir()
	b := newBuilder(cache, nil)
	b.goTool = goTool
	_, err := b.binary(t.Context(), checkout(t, "package main\n\nfunc main() {}\n"))
	for _, want := range []string{"no space left on device", "GOCACHE (" + gocache + ")", "GOMODCACHE (", "XDG_CACHE_HOME (" + cache, "free some space"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

func TestBuildErrors(t *testing.T) {
	readonly := filepath.Join(t.TempDir(), "readonly")
	write(t, readonly, "a file where a folder should be")
	fine := "package main\n\nfunc main() {}\n"
	tests := map[string]struct {
		why   string
		main  string
		cache string
		tool  string
		says  []string
	}{
		"no go":        {why: "the first thing a stranger lacks", main: fine, tool: "no-such-go", says: []string{"no-such-go", "install Go", EnvBinary}},
		"bad cache":    {why: "a home that cannot be written", main: fine, cache: filepath.Join(readonly, "x"), tool: "go", says: []string{readonly, "XDG_CACHE_HOME"}},
		"bad source":   {why: "the compiler's own words are the best", main: "package main\n\nfunc main() { nonsense() }\n", tool: "go", says: []string{"main.go:3:15: undefined: nonsense"}},
		"bad import":   {why: "a module that is not required", main: "package main\n\nimport _ \"example.invalid/x\"\n\nfunc main() {}\n", tool: "go", says: []string{"example.invalid/x"}},
		"no main func": {why: "an error of the linker stage", main: "package main\n", tool: "go", says: []string{"function main is undeclared"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.cache == "" {
				tt.cache = t.TempDir()
			}
			b := newBuilder(tt.cache, nil)
			b.goTool = tt.tool
			_, err := b.binary(t.Context(), checkout(t, tt.main))
			if err == nil {
				t.Fatalf("no error; %s", tt.why)
			}
			for _, want := range tt.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q; %s", err, want, tt.why)
				}
			}
		})
	}
}

func TestKey(t *testing.T) {
	const main = "package main\n\nfunc main() {}\n"
	src := checkout(t, main)
	key := func() string {
		t.Helper()
		k, err := src.key()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	before := key()
	write(t, filepath.Join(src.dir, "x_test.go"), "package x")
	write(t, filepath.Join(src.dir, "testdata", "x.yaml"), "x")
	write(t, filepath.Join(src.dir, ".editor", "x.go"), "x")
	if got := key(); got != before {
		t.Errorf("key changed from %q to %q with files that no build depends on", before, got)
	}
	write(t, filepath.Join(src.dir, "stage.yaml"), "embedded")
	if got := key(); got == before {
		t.Error("key did not change with a file that may be embedded")
	}
	for _, name := range []string{"go.work", "go.mod", "test/go.mod"} {
		before = key()
		write(t, filepath.Join(filepath.Dir(src.dir), name), "// versions\n")
		if got := key(); got == before {
			t.Errorf("key did not change with %s, which may choose the version of another module", name)
		}
	}
}

func TestSourceBeside(t *testing.T) {
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(filepath.Dir(here)))
	tests := map[string]struct {
		why  string
		file string
		want source
		ok   bool
	}{
		"checkout":     {"a contributor, or a replace line", here, source{dir: filepath.Join(root, "devcluster")}, true},
		"module cache": {"a user's test", "/home/x/go/pkg/mod/" + rootModule + "@v0.3.1/internal/controlplane/source.go", source{version: "v0.3.1"}, true},
		"trimpath":     {"a released binary", rootModule + "@v0.3.1/internal/controlplane/source.go", source{version: "v0.3.1"}, true},
		"unknown":      {"-trimpath in a checkout", rootModule + "/internal/controlplane/source.go", source{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := sourceBeside(tt.file)
			if ok != tt.ok || got != tt.want {
				t.Errorf("got %+v, %v; want %+v, %v; %s", got, ok, tt.want, tt.ok, tt.why)
			}
		})
	}
}

func TestSourceOfBuild(t *testing.T) {
	tests := map[string]struct {
		why  string
		info debug.BuildInfo
		want source
		ok   bool
	}{
		"installed": {"go install ...@v0.3.1", debug.BuildInfo{Main: debug.Module{Path: rootModule, Version: "v0.3.1"}}, source{version: "v0.3.1"}, true},
		"required":  {"a user's binary", debug.BuildInfo{Deps: []*debug.Module{{Path: "x"}, {Path: rootModule, Version: "v0.3.1"}}}, source{version: "v0.3.1"}, true},
		"devel":     {"go run in a checkout", debug.BuildInfo{Main: debug.Module{Path: rootModule, Version: "(devel)"}}, source{}, false},
		"dirty":     {"nobody published this", debug.BuildInfo{Main: debug.Module{Path: rootModule, Version: "v0.3.1+dirty"}}, source{}, false},
		"replaced":  {"by a folder, which has no version", debug.BuildInfo{Deps: []*debug.Module{{Path: rootModule, Version: "v0.3.1", Replace: &debug.Module{Path: "../trimtab"}}}}, source{}, false},
		"absent":    {"something else altogether", debug.BuildInfo{}, source{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := sourceOfBuild(&tt.info)
			if ok != tt.ok || ok && got != tt.want {
				t.Errorf("got %+v, %v; want %+v, %v; %s", got, ok, tt.want, tt.ok, tt.why)
			}
		})
	}
}
