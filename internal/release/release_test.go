package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

const version = "v0.3.1"

// repository makes a small one of the same shape. Its trimtab prints the version that it knows, and what it embeds.
func repository(t *testing.T) string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "small.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range archive.Files {
		put(t, filepath.Join(dir, filepath.FromSlash(f.Name)), string(f.Data))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "all"}} {
		command(t, dir, args...)
	}
	return dir
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, dir string, args ...string) {
	t.Helper()
	args = append([]string{"-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)
	if _, err := git(t.Context(), dir, args...); err != nil {
		t.Fatal(err)
	}
}

// made makes the release for one platform and returns its files and what was said.
func made(t *testing.T, repo, platform string) (files map[string]string, said string) {
	t.Helper()
	var log bytes.Buffer
	r := release{version: version, repository: repo, out: filepath.Join(t.TempDir(), "dist"), platforms: []string{platform}, log: &log}
	if err := r.make(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	entries, err := os.ReadDir(r.out)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(content)
	}
	return files, log.String()
}

// unpacked returns the content of the files in an archive, and "-> TARGET" for a link.
func unpacked(t *testing.T, name, archive string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if strings.HasSuffix(name, ".zip") {
		packed, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range packed.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			files[f.Name] = read(t, r)
		}
		return files
	}
	packed, err := gzip.NewReader(strings.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = read(t, r)
		if h.Linkname != "" {
			files[h.Name] = "-> " + h.Linkname
		}
		if executable := h.Mode&0o111 != 0; executable != (h.Name == "trimtab" || h.Name == "kubectl-trimtab" || h.Name == "devcluster") {
			t.Errorf("%s has the mode %o", h.Name, h.Mode)
		}
	}
}

func read(t *testing.T, r io.Reader) string {
	t.Helper()
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func keys(files map[string]string) map[string]bool {
	names := map[string]bool{}
	for name := range files {
		names[name] = true
	}
	return names
}

// TestRelease makes a release as it is made: once before the digests of the control planes are committed, and once after.
func TestRelease(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no control plane is released for Windows")
	}
	t.Parallel()
	repo := repository(t)
	platform := runtime.GOOS + "/" + runtime.GOARCH
	first, said := made(t, repo, platform)
	if want := controlplane.ReleasedFile + " has changed: commit it"; !strings.Contains(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	command(t, repo, "commit", "-q", "-a", "-m", "release "+version)
	command(t, repo, "tag", version)
	second, said := made(t, repo, platform)
	if strings.Contains(said, "has changed") {
		t.Errorf("said %q after the digests were committed", said)
	}
	if diff := cmp.Diff(keys(first), keys(second)); diff != "" {
		t.Errorf("the second time (-first +second):\n%s", diff)
	}
	for name, content := range first {
		if second[name] != content {
			t.Errorf("%s has other bytes when it is made again", name)
		}
	}

	control := controlplane.FileName("devcluster", version, runtime.GOOS, runtime.GOARCH)
	tool := controlplane.FileName("trimtab", version, runtime.GOOS, runtime.GOARCH)
	want := map[string]bool{control: true, control + ".cdx.json": true, tool: true, tool + ".cdx.json": true, "notes.md": true, "SHA256SUMS": true}
	if diff := cmp.Diff(want, keys(first)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("# trimtab "+version+"\n\n- It works.\n", first["notes.md"]); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	sums := 0
	for line := range strings.Lines(first["SHA256SUMS"]) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if sum := sha256.Sum256([]byte(first[name])); hex.EncodeToString(sum[:]) == digest {
			sums++
		}
	}
	if sums != len(want)-1 {
		t.Errorf("%d right digests in\n%s", sums, first["SHA256SUMS"])
	}
	inspect(t, unpacked(t, tool, first[tool]), unpacked(t, control, first[control]), first["SHA256SUMS"])
}

// inspect runs the trimtab that was released, and looks for the licenses that belong to both programs.
func inspect(t *testing.T, tool, control map[string]string, sums string) {
	t.Helper()
	if tool["kubectl-trimtab"] != "-> trimtab" {
		t.Errorf("kubectl-trimtab is %q", tool["kubectl-trimtab"])
	}
	for _, files := range []map[string]string{tool, control} {
		if files["LICENSE"] != "free for all\n" || !strings.Contains(files["licenses/std/LICENSE"], "The Go Authors") {
			t.Errorf("licenses are missing: there are %v", keys(files))
		}
	}
	if !strings.Contains(tool["licenses/golang.org/x/mod/LICENSE"], "The Go Authors") {
		t.Errorf("a license of what is linked is missing: there are %v", keys(tool))
	}
	path := filepath.Join(t.TempDir(), "trimtab")
	if err := os.WriteFile(path, []byte(tool["trimtab"]), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path).Output()
	if err != nil {
		t.Fatal(err)
	}
	known, digests, _ := strings.Cut(string(out), "\n")
	if known != version {
		t.Errorf("trimtab knows the version %q", known)
	}
	if !strings.Contains(sums, digests) || !strings.Contains(digests, "  devcluster_"+version) || strings.Contains(digests, "json") {
		t.Errorf("trimtab knows the digests %q; want those of control planes in\n%s", digests, sums)
	}
}

// TestOtherPlatform makes the archive for Windows, where a second name is a second file.
func TestOtherPlatform(t *testing.T) {
	t.Parallel()
	files, _ := made(t, repository(t), "windows/amd64")
	want := map[string]bool{"trimtab_v0.3.1_windows_amd64.zip": true, "trimtab_v0.3.1_windows_amd64.zip.cdx.json": true, "notes.md": true, "SHA256SUMS": true}
	if diff := cmp.Diff(want, keys(files)); diff != "" {
		t.Fatalf("files (-want +got):\n%s", diff)
	}
	packed := unpacked(t, "trimtab.zip", files["trimtab_v0.3.1_windows_amd64.zip"])
	if program := packed["trimtab.exe"]; !strings.HasPrefix(program, "MZ") || packed["kubectl-trimtab.exe"] != program {
		t.Errorf("the archive has %v, want a program of Windows under two names", keys(packed))
	}
}

// strict is what the schema of CycloneDX 1.6 wants of the parts that are written, and nothing else.
type strict struct {
	BomFormat   string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Version     int    `json:"version"`
	Metadata    struct {
		Component strictComponent `json:"component"`
	} `json:"metadata"`
	Components []strictComponent `json:"components"`
}

type strictComponent struct {
	Type       string `json:"type"`
	BomRef     string `json:"bom-ref"`
	Name       string `json:"name"`
	Version    string `json:"version"`
	PURL       string `json:"purl"`
	Properties []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"properties"`
}

var packageURL = regexp.MustCompile(`^pkg:golang/[A-Za-z0-9./_~-]+@[A-Za-z0-9.%_-]+(#[a-z/]+)?$`)

// TestModules: the list is a document of CycloneDX with everything that the binary says of itself.
func TestModules(t *testing.T) {
	t.Parallel()
	files, _ := made(t, repository(t), runtime.GOOS+"/"+runtime.GOARCH)
	list := controlplane.FileName("trimtab", version, runtime.GOOS, runtime.GOARCH) + ".cdx.json"
	decoder := json.NewDecoder(strings.NewReader(files[list]))
	decoder.DisallowUnknownFields()
	var doc strict
	if err := decoder.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if doc.BomFormat != "CycloneDX" || doc.SpecVersion != "1.6" || doc.Version != 1 {
		t.Errorf("the document is %s %s, version %d", doc.BomFormat, doc.SpecVersion, doc.Version)
	}
	refs := map[string]bool{}
	var got []string
	for i, c := range append(doc.Components, doc.Metadata.Component) {
		if refs[c.BomRef] || c.BomRef == "" {
			t.Errorf("the reference %q is empty or used twice", c.BomRef)
		}
		refs[c.BomRef] = true
		if want := map[bool]string{true: "application", false: "library"}[i == len(doc.Components)]; c.Type != want || c.Name == "" || c.Version == "" {
			t.Errorf("component %+v, want a %s with name and version", c, want)
		}
		if !packageURL.MatchString(c.PURL) {
			t.Errorf("%q is no package URL", c.PURL)
		}
		got = append(got, c.PURL)
	}
	want := []string{
		"pkg:golang/golang.org/x/mod@v0.41.0", "pkg:golang/std@" + strings.TrimPrefix(runtime.Version(), "go"),
		"pkg:golang/github.com/trimtab-dev/trimtab@v0.3.1#cmd/trimtab",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	properties := fmt.Sprint(doc.Metadata.Component.Properties, doc.Components[0].Properties)
	for _, want := range []string{"{go:GOOS " + runtime.GOOS + "}", "{go:GOARCH " + runtime.GOARCH + "}", "{go:CGO_ENABLED 0}", "{go:-trimpath true}", "{go:sum h1:"} {
		if !strings.Contains(properties, want) {
			t.Errorf("properties %s lack %s", properties, want)
		}
	}
}

func TestWhatIsNoRelease(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why    string
		args   []string
		change map[string]string
		says   string
	}{
		"no version":    {"make release without one", nil, nil, `-version "" is not a version; use one like v0.1.0`},
		"short version": {"the go command knows no such tag", []string{"-version", "v0.3"}, nil, `-version "v0.3" is not a version`},
		"no v":          {"neither this one", []string{"-version", "0.3.1"}, nil, `-version "0.3.1" is not a version`},
		"no platform":   {"a typing error", []string{"-version", version, "-platforms", "linux/amd46"}, nil, `-platforms "linux/amd46": choose from linux/amd64,`},
		"no notes":      {"nobody said what is new", []string{"-version", "v0.4.0"}, nil, `CHANGELOG.md has no section "## 0.4.0"`},
		"uncommitted":   {"a tag would name something else", []string{"-version", version}, map[string]string{"new.go": "package x"}, "new.go is not committed as it is"},
		"broken": {
			"it does not compile",
			[]string{"-version", version, "-platforms", runtime.GOOS + "/" + runtime.GOARCH},
			map[string]string{"cmd/trimtab/main.go": "package main\n\nimport _ \"golang.org/x/mod/semver\"\n\nfunc main() { nothing() }\n"},
			"main.go:5:15: undefined: nothing",
		},
		"unknown module": {"somebody changed what go.sum vouches for", []string{"-version", version, "-platforms", runtime.GOOS + "/" + runtime.GOARCH}, map[string]string{"go.sum": ""}, "which go.sum does not list"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := repository(t)
			for file, content := range tt.change {
				put(t, filepath.Join(repo, file), content)
				if file != "new.go" {
					command(t, repo, "commit", "-q", "-a", "-m", "change")
				}
			}
			err := inFolder(t.Context(), repo, tt.args)
			if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "downloading") {
				t.Errorf("error %v, want %q and no progress; %s", err, tt.says, tt.why)
			}
		})
	}
}

// inFolder is run for a repository elsewhere than in the working folder.
func inFolder(ctx context.Context, repo string, args []string) error {
	args = append([]string{"-repository", repo, "-o", filepath.Join(repo, "..", "dist")}, args...)
	return run(ctx, args, io.Discard)
}

// canceling ends a context as soon as something is built.
type canceling context.CancelFunc

func (c canceling) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("build ")) {
		c()
	}
	return len(p), nil
}

// TestInterrupted: after Ctrl-C, neither modules nor the go command's own files are left.
func TestInterrupted(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := release{version: version, repository: repository(t), out: filepath.Join(t.TempDir(), "dist"), log: canceling(cancel)}
	if err := r.make(ctx); err == nil || ctx.Err() == nil {
		t.Errorf("error %v, want that it was interrupted", err)
	}
	left, err := filepath.Glob(filepath.Join(tmp, "*release*"))
	if err != nil {
		t.Fatal(err)
	}
	if more, err := filepath.Glob(filepath.Join(tmp, "go-build*")); err != nil || len(left)+len(more) > 0 {
		t.Errorf("left behind: %q, %v", append(left, more...), err)
	}
}

// TestOtherBytesOfTheSameVersion: what is tagged and published cannot be replaced.
func TestOtherBytesOfTheSameVersion(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no control plane is released for Windows")
	}
	t.Parallel()
	repo := repository(t)
	command(t, repo, "tag", version)
	err := inFolder(t.Context(), repo, []string{"-version", version, "-platforms", runtime.GOOS + "/" + runtime.GOARCH})
	if want := "the control planes differ from those that v0.3.1 lists"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if content, err := os.ReadFile(filepath.Join(repo, controlplane.ReleasedFile)); err != nil || len(content) > 0 {
		t.Errorf("the tagged list has become %q, %v", content, err)
	}
}
