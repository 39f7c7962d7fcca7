package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/image"
)

// program returns the path of a file with the given content and times.
func program(t *testing.T, content string, at time.Time) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
	return file
}

func write(t *testing.T, i image.Image) (archive []byte, digest string) {
	t.Helper()
	var out bytes.Buffer
	digest, err := image.Write(&out, i)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), digest
}

// entry is a file in an archive.
type entry struct {
	Mode    int64
	Content string
}

// unpack returns the files of an archive, and fails if one has an owner or a time.
func unpack(t *testing.T, archive io.Reader) map[string]entry {
	t.Helper()
	out := map[string]entry{}
	r := tar.NewReader(archive)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.ModTime.Unix() != 0 {
			t.Errorf("%s: owner %d:%d %q, time %s; want none, so that the digest does not depend on them", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			out[h.Name] = entry{h.Mode, string(content)}
		}
	}
}

type reference struct {
	MediaType, Digest string
	Size              int
	Platform          *image.Platform
	Annotations       map[string]string
}

// layout are the files of an image layout.
type layout map[string]entry

// read reads a blob into out, after checking its digest and size.
func (l layout) read(t *testing.T, r reference, out any) {
	t.Helper()
	blob, is := l["blobs/"+strings.Replace(r.Digest, ":", "/", 1)]
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(blob.Content))); !is || sum != r.Digest || len(blob.Content) != r.Size {
		t.Fatalf("blob %s of %d bytes: there %t, digest %s, %d bytes", r.Digest, r.Size, is, sum, len(blob.Content))
	}
	if b, is := out.(*[]byte); is {
		*b = []byte(blob.Content)
		return
	}
	if err := json.Unmarshal([]byte(blob.Content), out); err != nil {
		t.Fatal(err)
	}
}

// TestWrite follows an image from its index to the program, as a container runtime does.
func TestWrite(t *testing.T) {
	t.Parallel()
	arm, amd := image.Platform{OS: "linux", Architecture: "arm64"}, image.Platform{OS: "linux", Architecture: "amd64"}
	now := time.Now()
	i := image.Image{
		Name: "registry.example.org:5000/you/widgets:v1", Program: "widgets", Roots: []byte("roots"),
		Binaries: map[image.Platform]string{arm: program(t, "for arm", now), amd: program(t, "for amd", now)},
	}
	archive, digest := write(t, i)
	files := layout(unpack(t, bytes.NewReader(archive)))
	if got := files["oci-layout"].Content; got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %q", got)
	}
	var top struct{ Manifests []reference }
	if err := json.Unmarshal([]byte(files["index.json"].Content), &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("index.json has %d entries, error %v", len(top.Manifests), err)
	}
	if m := top.Manifests[0]; m.Digest != digest || m.Annotations["org.opencontainers.image.ref.name"] != "v1" {
		t.Errorf("index.json refers to %s as %v, want %s as v1", m.Digest, m.Annotations, digest)
	}
	var index struct{ Manifests []reference }
	files.read(t, top.Manifests[0], &index)
	programs := map[string]string{}
	for _, m := range index.Manifests {
		programs[m.Platform.String()] = follow(t, files, m)
	}
	if diff := cmp.Diff(map[string]string{"linux/amd64": "for amd", "linux/arm64": "for arm"}, programs); diff != "" {
		t.Errorf("programs by platform (-want +got):\n%s", diff)
	}
}

// follow checks the image of a platform, and returns its program.
func follow(t *testing.T, files layout, m reference) string {
	t.Helper()
	var manifest struct {
		Config reference
		Layers []reference
	}
	files.read(t, m, &manifest)
	var config struct {
		OS, Architecture string
		Config           struct {
			User       string
			Entrypoint []string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	files.read(t, manifest.Config, &config)
	if got := (image.Platform{OS: config.OS, Architecture: config.Architecture}); got != *m.Platform {
		t.Errorf("the configuration is for %s, and the index says %s", got, m.Platform)
	}
	if config.Config.User != "65532:65532" || cmp.Diff([]string{"/widgets"}, config.Config.Entrypoint) != "" {
		t.Errorf("it runs %q as %q, want /widgets as a user other than root, by number", config.Config.Entrypoint, config.Config.User)
	}
	if len(manifest.Layers) != 1 || len(config.RootFS.DiffIDs) != 1 {
		t.Fatalf("%d layers, %d ids; want one", len(manifest.Layers), len(config.RootFS.DiffIDs))
	}
	var packed []byte
	files.read(t, manifest.Layers[0], &packed)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(plain)); sum != config.RootFS.DiffIDs[0] {
		t.Errorf("the layer is %s, and the configuration says %s", sum, config.RootFS.DiffIDs[0])
	}
	inside := unpack(t, bytes.NewReader(plain))
	if inside["widgets"].Mode != 0o755 || inside["etc/ssl/certs/ca-certificates.crt"] != (entry{0o644, "roots"}) {
		t.Errorf("the layer contains %v", inside)
	}
	return inside["widgets"].Content
}

// TestSameInputsSameDigest: times, folders and owners of files are no inputs.
func TestSameInputsSameDigest(t *testing.T) {
	t.Parallel()
	of := func(content, name string, at time.Time) ([]byte, string) {
		return write(t, image.Image{
			Name: name, Program: "widgets", Roots: []byte("roots"),
			Binaries: map[image.Platform]string{{OS: "linux", Architecture: "amd64"}: program(t, content, at)},
		})
	}
	first, digest := of("program", "widgets:v1", time.Now())
	again, same := of("program", "widgets:v1", time.Now().Add(-time.Hour))
	if digest != same || !bytes.Equal(first, again) {
		t.Errorf("digests %s and %s, archives equal: %t", digest, same, bytes.Equal(first, again))
	}
	if _, renamed := of("program", "widgets:v2", time.Now()); renamed != digest {
		t.Error("the digest depends on the tag")
	}
	if _, other := of("another", "widgets:v1", time.Now()); other == digest {
		t.Error("the digest does not depend on the program")
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"linux/arm64": "linux/arm64", "linux": "", "/arm64": "", "linux/": "", "linux/arm/v7": ""} {
		got, err := image.Parse(text)
		if want == "" && (err == nil || !strings.Contains(err.Error(), "such as linux/amd64")) || want != "" && (err != nil || got.String() != want) {
			t.Errorf("%q: %v, %v; want %q", text, got, err, want)
		}
	}
}

func TestRoots(t *testing.T) {
	t.Parallel()
	wrong := program(t, "no certificate", time.Now())
	for file, want := range map[string]string{wrong: "contains no certificate", filepath.Join(t.TempDir(), "none"): "no such file"} {
		if _, err := image.Roots(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", file, err, want)
		}
	}
}
