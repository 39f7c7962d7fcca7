package controlplane

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// EnvReleases is the name of the environment variable with the address of the files of releases, in which {version} and {file}
// stand for those of a file. If it is set and empty, nothing is downloaded, and the control plane is built.
const EnvReleases = "TRIMTAB_RELEASES"

// releases is the address where nothing else is set.
const releases = "https://github.com/trimtab-dev/trimtab/releases/download/{version}/{file}"

// ReleasedFile is the path of the file that lists the control planes of this version. internal/release writes it.
const ReleasedFile = "internal/controlplane/released.txt"

// released has a line for each platform: the digest and the name of a file, as sha256sum prints them. It is part of the module,
// so whoever trusts this code trusts the digests. It is empty until the first release.
//
//go:embed released.txt
var released string

// FileName returns the name of the archive with a program of a release.
func FileName(program, version, goos, goarch string) string {
	extension := ".tar.gz"
	if goos == "windows" {
		extension = ".zip"
	}
	return program + "_" + version + "_" + goos + "_" + goarch + extension
}

// asset is a control plane that was released.
type asset struct {
	// url is the address, of which credentials are never shown.
	url, file, digest string
}

// downloads knows where control planes of releases are. Its zero value knows none.
type downloads struct {
	released, address string
}

func published() downloads {
	address, set := os.LookupEnv(EnvReleases)
	if !set {
		address = releases
	}
	return downloads{released: released, address: address}
}

// of returns the control plane that was released with src. A checkout has none, and neither has a version between two releases.
func (d downloads) of(src source) (asset, bool) {
	if d.address == "" || src.dir != "" || src.version == "" {
		return asset{}, false
	}
	name := FileName("devcluster", src.version, runtime.GOOS, runtime.GOARCH)
	for line := range strings.Lines(d.released) {
		digest, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if file == name {
			url := strings.NewReplacer("{version}", src.version, "{file}", name).Replace(d.address)
			return asset{url: url, file: name, digest: digest}, true
		}
	}
	return asset{}, false
}

// key identifies the binary in the cache. It does not depend on the version of Go with which this program was built.
func (d asset) key(src source) string { return src.version + "-" + d.digest[:16] }

const (
	// fetchWithin is less than a build takes; what takes longer is built.
	fetchWithin = 4 * time.Minute
	// answerWithin is how long a server may say nothing.
	answerWithin = 15 * time.Second
	// largest is a multiple of the size of a control plane.
	largest  = 1 << 30
	megabyte = 1 << 20
)

// fetch downloads d and moves the binary to its place in the cache. The caller holds the lock.
func (b *builder) fetch(ctx context.Context, d asset, key string) error {
	tmp := filepath.Join(b.cache, key+unfinished)
	finished := filepath.Join(tmp, "bin")
	defer os.RemoveAll(tmp)
	if err := os.MkdirAll(finished, 0o700); err != nil {
		return err
	}
	b.meter.set(Fetching, 0, 0)
	stop := b.meter.start()
	defer stop()
	archive, err := os.Create(filepath.Join(tmp, d.file))
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := b.get(ctx, d, archive); err != nil {
		return err
	}
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := unpack(archive, executable(finished)); err != nil {
		return fmt.Errorf("unpack %s: %w", d.file, err)
	}
	if err := os.Rename(finished, filepath.Join(b.cache, key)); err != nil {
		return err
	}
	stop()
	b.meter.built()
	return nil
}

// get writes the file to w if it is the one that was released.
func (b *builder) get(ctx context.Context, d asset, w io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchWithin, fmt.Errorf("it took longer than %s", fetchWithin))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: answerWithin}).DialContext,
		TLSHandshakeTimeout: answerWithin, ResponseHeaderTimeout: answerWithin,
	}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err // names the address, without a password
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", req.URL.Redacted(), resp.Status)
	}
	hash := sha256.New()
	total := int(resp.ContentLength / megabyte)
	read := &counter{r: io.LimitReader(resp.Body, largest), count: func(n int64) { b.meter.set(Fetching, int(n/megabyte), total) }}
	if _, err := io.Copy(io.MultiWriter(w, hash), read); err != nil {
		return fmt.Errorf("read %s: %w", req.URL.Redacted(), errors.Join(err, context.Cause(ctx)))
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != d.digest {
		return fmt.Errorf("%s has the SHA-256 %s, not %s as released", req.URL.Redacted(), got, d.digest)
	}
	return nil
}

// counter tells how much has been read.
type counter struct {
	r     io.Reader
	n     int64
	count func(int64)
}

// Read reads from r.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.count(c.n)
	return n, err
}

// unpack writes the control plane of an archive to path. The archive is the one that was released, so it is trusted.
func unpack(archive io.Reader, path string) error {
	packed, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	files := tar.NewReader(packed)
	for {
		h, err := files.Next()
		if err != nil {
			return err
		}
		if h.Name != filepath.Base(path) {
			continue
		}
		out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700) //nolint:gosec // a program
		if err != nil {
			return err
		}
		_, err = io.CopyN(out, files, h.Size)
		return errors.Join(err, out.Close())
	}
}
