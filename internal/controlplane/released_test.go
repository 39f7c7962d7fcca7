package controlplane

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// packed is an archive as internal/release makes it.
func packed(t *testing.T, name, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	for _, f := range []struct{ name, content string }{{"LICENSE", "free"}, {name, content}} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const releasedVersion = "v0.3.1"

// listed is what released.txt says of an archive.
func listed(archive []byte) string {
	sum := sha256.Sum256(archive)
	return hex.EncodeToString(sum[:]) + "  " + FileName("devcluster", releasedVersion, runtime.GOOS, runtime.GOARCH) + "\n"
}

const script = "#!/bin/sh\necho released\n"

func TestReleasedControlPlaneIsDownloaded(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script stands in for the control plane, and Windows does not run it")
	}
	t.Parallel()
	archive := packed(t, "devcluster", script)
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if want := "/" + releasedVersion + "/" + FileName("devcluster", releasedVersion, runtime.GOOS, runtime.GOARCH); r.URL.Path != want {
			t.Errorf("asked for %s, want %s", r.URL.Path, want)
		}
		_, _ = w.Write(archive)
	}))
	defer server.Close()
	cache := t.TempDir()
	var last Step
	b := newBuilder(cache, func(s Step) { last = s })
	b.goTool = "no-such-go" // nothing is built
	b.downloads = downloads{released: listed([]byte("another platform's")) + listed(archive), address: server.URL + "/{version}/{file}"}
	b.downloads.released = strings.Replace(b.downloads.released, runtime.GOARCH, "z80", 1)
	for range 2 {
		path, err := b.binary(t.Context(), source{version: releasedVersion})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), path).Output(); err != nil || string(out) != "released\n" {
			t.Errorf("the binary answers %q, %v", out, err)
		}
		if diff := cmp.Diff([]string{"lock", filepath.Base(filepath.Dir(path))}, names(t, cache)); diff != "" {
			t.Errorf("in the cache (-want +got):\n%s", diff)
		}
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want one: the binary is in the cache then", n)
	}
	if last.Phase != Built || last.Instead != "" {
		t.Errorf("the last step is %+v, want that all went well", last)
	}
}

func TestWhatCannotBeDownloadedIsBuilt(t *testing.T) {
	publish(t, checkout(t, "package main\n\nfunc main() { println(\"built\") }\n"), releasedVersion)
	archive := packed(t, "devcluster", script)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	tests := map[string]struct {
		why    string
		answer http.HandlerFunc
		listed string
		says   []string
	}{
		"another file": {"somebody has put it there", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(packed(t, "devcluster", "#!/bin/sh\nsteal\n"))
		}, listed(archive), []string{"SHA-256", "as released"}},
		"half of it": {"a proxy gave up", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive[:len(archive)/2]) }, listed(archive), []string{"SHA-256"}},
		"cut": {"the connection broke", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99999")
			_, _ = w.Write(archive)
		}, listed(archive), []string{"unexpected EOF"}},
		"not there":     {"the files were not uploaded yet", http.NotFound, listed(archive), []string{"404 Not Found"}},
		"no network":    {"on a train", nil, listed(archive), []string{"connection refused"}},
		"without it":    {"released wrongly", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed(t, "other", script)) }, listed(packed(t, "other", script)), []string{"unpack devcluster_v0.3.1_"}},
		"not a program": {"released wrongly, too", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }, listed([]byte("x")), []string{"unpack devcluster_v0.3.1_"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			url := closed.URL
			if tt.answer != nil {
				server := httptest.NewServer(tt.answer)
				defer server.Close()
				url = server.URL
			}
			cache := t.TempDir()
			var sentences []string
			b := newBuilder(cache, func(s Step) {
				if s.Instead != "" {
					sentences = append(sentences, s.Instead)
				}
			})
			b.downloads = downloads{released: tt.listed, address: strings.Replace(url, "//", "//user:secret@", 1) + "/{file}"}
			path, err := b.binary(t.Context(), source{version: releasedVersion})
			if err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), path).CombinedOutput(); err != nil || string(out) != "built\n" {
				t.Errorf("the binary answers %q, %v; want the one that was built, because %s", out, err, tt.why)
			}
			if len(sentences) != 1 {
				t.Fatalf("told %q, want one sentence", sentences)
			}
			for _, want := range append(tt.says, "the released control plane cannot be used: ", "it is built instead, which takes several minutes") {
				if !strings.Contains(sentences[0], want) {
					t.Errorf("told %q, want %q in it", sentences[0], want)
				}
			}
			if strings.Contains(sentences[0], "secret") {
				t.Errorf("told a password: %q", sentences[0])
			}
			if diff := cmp.Diff([]string{"lock", filepath.Base(filepath.Dir(path))}, names(t, cache)); diff != "" {
				t.Errorf("left in the cache (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsDownloaded(t *testing.T) {
	archive := packed(t, "devcluster", script)
	tests := map[string]struct {
		why     string
		src     source
		address string
		want    bool
	}{
		"release":       {"what this is for", source{version: releasedVersion}, releases, true},
		"checkout":      {"a development build never downloads, not even beside a release", source{dir: "/src/devcluster", version: releasedVersion}, releases, false},
		"other version": {"between two releases", source{version: "v0.3.2-0.20260101000000-abcdefabcdef"}, releases, false},
		"switched off":  {EnvReleases + " is empty", source{version: releasedVersion}, "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(EnvReleases, tt.address)
			d := published()
			d.released = listed(archive)
			if got, ok := d.of(tt.src); ok != tt.want {
				t.Errorf("downloads %+v: %v, want %v; %s", got, ok, tt.want, tt.why)
			}
		})
	}
	t.Setenv(EnvReleases, "") // so that it is restored
	if err := os.Unsetenv(EnvReleases); err != nil {
		t.Fatal(err)
	}
	if got := published().address; got != releases {
		t.Errorf("the address is %q, want %q where nothing is set", got, releases)
	}
}

// TestReleasedFile: each line names a control plane of one version.
func TestReleasedFile(t *testing.T) {
	t.Parallel()
	versions := map[string]bool{}
	for line := range strings.Lines(released) {
		digest, file, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		parts := strings.Split(strings.TrimSuffix(file, ".tar.gz"), "_")
		if raw, err := hex.DecodeString(digest); err != nil || len(raw) != sha256.Size || len(parts) != 4 || FileName(parts[0], parts[1], parts[2], parts[3]) != file {
			t.Errorf("%s has the line %q; make release writes it", ReleasedFile, line)
			continue
		}
		versions[parts[1]] = true
	}
	if len(versions) > 1 {
		t.Errorf("%s has control planes of %d versions, and a program needs that of its own", ReleasedFile, len(versions))
	}
}

func TestPrintSaysWhyItIsBuilt(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	m := newMeter(Print(&out), filepath.Join(t.TempDir(), "progress.json"))
	m.set(Fetching, 12, 40)
	m.tell(m.now())
	m.instead(os.ErrDeadlineExceeded)
	want := "the control plane: downloading the released one, 12 of 40 MB, 0s\n" +
		"the released control plane cannot be used: i/o timeout; it is built instead, which takes several minutes\n" +
		"the control plane: preparing, 0s\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}
