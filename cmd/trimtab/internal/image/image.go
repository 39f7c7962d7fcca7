// Package image writes container images of programs that need no files, as archives in the image layout of OCI. It needs no
// Docker and no registry, and writes the same bytes for the same programs.
//
// [Write] writes an image with a program for each platform.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// Image is an image of a program.
type Image struct {
	// Name is the name of the image with its tag, and Program that of the program in it.
	Name, Program string
	// Binaries are the files of statically linked programs, by platform.
	Binaries map[Platform]string
	// Roots are the certificates of authorities that the program trusts, as PEM.
	Roots []byte
}

// Platform is an operating system and an architecture, as Go names them and OCI does.
type Platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
}

// Parse returns the platform that a text such as "linux/amd64" names.
func Parse(text string) (Platform, error) {
	system, architecture, is := strings.Cut(text, "/")
	if !is || system == "" || architecture == "" || strings.Contains(architecture, "/") {
		return Platform{}, fmt.Errorf("%q is no platform; name an operating system and an architecture, such as linux/amd64", text)
	}
	return Platform{system, architecture}, nil
}

// String returns the platform as [Parse] takes it.
func (p Platform) String() string { return p.OS + "/" + p.Architecture }

// User is the user and the group as whom the program runs: numbers, because Kubernetes can then see that it is not root.
const User = "65532:65532"

const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// descriptor refers to a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    *Platform         `json:"platform,omitempty"`
}

// Write writes the archive, and returns the digest by which registries know the image.
func Write(w io.Writer, i Image) (digest string, err error) {
	blobs := map[string][]byte{}
	var manifests []descriptor
	platforms := slices.SortedFunc(maps.Keys(i.Binaries), func(a, b Platform) int { return strings.Compare(a.String(), b.String()) })
	for _, p := range platforms {
		manifest, err := i.manifest(blobs, p)
		if err != nil {
			return "", err
		}
		manifest.Platform = &p
		manifests = append(manifests, manifest)
	}
	image, err := addJSON(blobs, typeIndex, map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": manifests})
	if err != nil {
		return "", err
	}
	image.Annotations = map[string]string{"org.opencontainers.image.ref.name": tag(i.Name), "io.containerd.image.name": i.Name}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []descriptor{image}})
	if err != nil {
		return "", err
	}
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`), "index.json": index}
	for digest, content := range blobs {
		files["blobs/"+strings.Replace(digest, ":", "/", 1)] = content
	}
	return image.Digest, archive(w, files, nil)
}

// tag returns the tag of an image.
func tag(name string) string {
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[i+1:]
	}
	return "latest"
}

// manifest adds the image of a platform.
func (i Image) manifest(blobs map[string][]byte, p Platform) (descriptor, error) {
	binary, err := os.ReadFile(i.Binaries[p])
	if err != nil {
		return descriptor{}, err
	}
	files := map[string][]byte{
		i.Program: binary, "etc/ssl/certs/ca-certificates.crt": i.Roots,
		"etc/passwd": []byte("nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"), "etc/group": []byte("nonroot:x:65532:\n"),
	}
	var plain, packed bytes.Buffer
	if err := archive(&plain, files, map[string]int64{i.Program: 0o755}); err != nil {
		return descriptor{}, err
	}
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain.Bytes()); err != nil {
		return descriptor{}, err
	}
	if err := z.Close(); err != nil {
		return descriptor{}, err
	}
	layer := add(blobs, typeLayer, packed.Bytes())
	config, err := addJSON(blobs, typeConfig, map[string]any{
		"architecture": p.Architecture, "os": p.OS,
		"config": map[string]any{
			"User": User, "Entrypoint": []string{"/" + i.Program}, "WorkingDir": "/",
			"Env": []string{"PATH=/", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digestOf(plain.Bytes())}},
	})
	if err != nil {
		return descriptor{}, err
	}
	return addJSON(blobs, typeManifest, map[string]any{
		"schemaVersion": 2, "mediaType": typeManifest, "config": config, "layers": []descriptor{layer},
	})
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// add adds a blob.
func add(blobs map[string][]byte, mediaType string, content []byte) descriptor {
	d := descriptor{MediaType: mediaType, Digest: digestOf(content), Size: len(content)}
	blobs[d.Digest] = content
	return d
}

// addJSON adds a blob of JSON, in which fields are sorted.
func addJSON(blobs map[string][]byte, mediaType string, content any) (descriptor, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return descriptor{}, err
	}
	return add(blobs, mediaType, text), nil
}

// archive writes files and their folders as a tar archive without times and owners, sorted by name. Modes are 0644 unless given.
func archive(w io.Writer, files map[string][]byte, modes map[string]int64) error {
	t := tar.NewWriter(w)
	made := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var folders []string
		for d := path.Dir(name); !made[d]; d = path.Dir(d) {
			made[d] = true
			folders = append(folders, d)
		}
		for _, d := range slices.Backward(folders) {
			if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d + "/", Mode: 0o755}); err != nil {
				return err
			}
		}
		mode := modes[name]
		if mode == 0 {
			mode = 0o644
		}
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(files[name]))}); err != nil {
			return err
		}
		if _, err := t.Write(files[name]); err != nil {
			return err
		}
	}
	return t.Close()
}
