package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

const (
	rootModule    = "github.com/trimtab-dev/trimtab"
	clusterModule = rootModule + "/devcluster"
	clusterMain   = "./cmd/devcluster"
)

// source is what the binary is built from: a folder of a checkout, or a published version of the
// module.
type source struct {
	dir     string
	version string
}

// ownSource finds the module devcluster that belongs to this build of trimtab.
func ownSource(ctx context.Context, goTool string) (source, error) {
	_, file, _, _ := runtime.Caller(0)
	if s, ok := sourceBeside(file); ok {
		return s, nil
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		if s, ok := sourceOfBuild(info); ok {
			return s, nil
		}
	}
	if s, ok := sourceListed(ctx, goTool); ok {
		return s, nil
	}
	return source{}, errors.New("this build of trimtab does not know its version, so it cannot build a matching control plane; " +
		"run it from a checkout, install a released version, or name a devcluster binary in " + EnvBinary)
}

// Source returns the version of trimtab that this program was built from, or the folder of the checkout, which has no version.
// Both are empty if neither is known.
func Source() (version, checkout string) {
	_, file, _, _ := runtime.Caller(0)
	s, found := sourceBeside(file)
	if info, ok := debug.ReadBuildInfo(); ok && !found {
		s, found = sourceOfBuild(info)
	}
	switch {
	case !found:
		return "", ""
	case s.dir != "":
		return "", filepath.Dir(s.dir)
	}
	return s.version, ""
}

// moduleVersion finds the version in a path in the module cache. The compiler records such paths, even
// with -trimpath.
var moduleVersion = regexp.MustCompile(`(?:^|/)` + regexp.QuoteMeta(rootModule) + `@(v[^/]+)/`)

// sourceBeside finds the source from the path of one of this package's files.
func sourceBeside(file string) (source, bool) {
	if m := moduleVersion.FindStringSubmatch(filepath.ToSlash(file)); m != nil {
		return source{version: m[1]}, true
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	return sourceInCheckout(root)
}

func sourceInCheckout(root string) (source, bool) {
	dir := filepath.Join(root, "devcluster")
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); !filepath.IsAbs(dir) || err != nil {
		return source{}, false
	}
	return source{dir: dir}, true
}

// sourceOfBuild finds the version among the modules that a binary was built from.
func sourceOfBuild(info *debug.BuildInfo) (source, bool) {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != rootModule {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		published := strings.HasPrefix(m.Version, "v") && !strings.HasSuffix(m.Version, "+dirty")
		return source{version: m.Version}, m.Path == rootModule && published
	}
	return source{}, false
}

// sourceListed asks the go command which version of trimtab the module in the working directory uses.
func sourceListed(ctx context.Context, goTool string) (source, bool) {
	cmd := goCommand(ctx, goTool, "", "list", "-m", "-f", "{{.Dir}}\n{{.Version}}", rootModule)
	out, err := cmd.Output()
	if err != nil {
		return source{}, false
	}
	dir, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if s, ok := sourceInCheckout(dir); ok {
		return s, true
	}
	return source{version: version}, version != ""
}

// key identifies the binary that s builds: equal keys mean equal binaries.
func (s source) key() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH, s.version)
	name := s.version
	if s.dir != "" {
		name = "checkout"
		if err := hashFolder(h, s.dir); err != nil {
			return "", fmt.Errorf("read the control plane's source: %w", err)
		}
		if err := hashVersions(h, filepath.Dir(s.dir)); err != nil {
			return "", fmt.Errorf("read the versions of the control plane's modules: %w", err)
		}
	}
	return name + "-" + hex.EncodeToString(h.Sum(nil))[:16], nil
}

// hashFolder writes the name, size and content of each file on which a build can depend to w.
func hashFolder(w io.Writer, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ignored := path != dir && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"); ignored {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		built := info.Mode()&0o111 != 0 // a binary that was left in the tree
		if !d.Type().IsRegular() || built || strings.HasSuffix(d.Name(), "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s %d\n%s\n", filepath.ToSlash(rel), len(content), content)
		return err
	})
}

// hashVersions writes to w the files of a checkout that choose the versions of other modules: a workspace takes the highest version
// that one of its modules requires.
func hashVersions(w io.Writer, root string) error {
	files := []string{"go.work"}
	for _, pattern := range []string{"go.mod", "*/go.mod"} {
		found, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a checkout needs no workspace
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "%s %d\n%s\n", name, len(content), content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// folder returns the folder of s and the workspace to build it in. In a checkout this is the checkout's
// own workspace, so that the build shares the cache with go test work.
func (s source) folder(ctx context.Context, goTool string) (dir, work string, err error) {
	if s.dir == "" {
		dir, err = download(ctx, goTool, clusterModule, s.version)
		return dir, "off", err
	}
	work = filepath.Join(filepath.Dir(s.dir), "go.work")
	if _, err := os.Stat(work); err != nil || os.Getenv("GOWORK") == "off" {
		work = "off"
	}
	return s.dir, work, nil
}
