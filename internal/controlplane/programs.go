package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
)

// Programs builds commands of trimtab's own module and returns the folder that contains them. The
// packages are relative to the module, as in "./samples/nats/cmd/nats-operator"; each binary has the
// name of the last element of its package. In a checkout Programs always runs the go command, which
// knows what has changed. Programs of a published version are built once and kept in the user's cache.
func Programs(ctx context.Context, progress Progress, packages ...string) (string, error) {
	cache, err := CacheFolder("programs")
	if err != nil {
		return "", err
	}
	const goTool = "go"
	src, err := ownSource(ctx, goTool)
	if err != nil {
		return "", err
	}
	b := builder{cache: cache, goTool: goTool, meter: newMeter(progress, filepath.Join(cache, "progress.json"))}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", unwritable(err)
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	dir := filepath.Join(cache, src.programs())
	if src.dir == "" && hasAll(dir, packages) {
		return dir, nil
	}
	return dir, b.buildPrograms(ctx, src, dir, packages)
}

// programs returns the name of the folder for programs of s: one for each version and each checkout.
func (s source) programs() string {
	if s.dir == "" {
		return s.version + "-" + runtime.GOOS + "-" + runtime.GOARCH
	}
	sum := sha256.Sum256([]byte(s.dir))
	return "checkout-" + hex.EncodeToString(sum[:])[:16]
}

func hasAll(dir string, packages []string) bool {
	for _, p := range packages {
		if _, err := os.Stat(filepath.Join(dir, path.Base(p))); err != nil {
			return false
		}
	}
	return true
}

func (b *builder) buildPrograms(ctx context.Context, src source, dir string, packages []string) error {
	scratch := dir + unfinished
	defer os.RemoveAll(scratch)
	for _, d := range []string{dir, scratch} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return unwritable(err)
		}
	}
	stop := b.meter.start()
	defer stop()
	tool, err := newGoForRoot(ctx, b.goTool, src, scratch, b.meter)
	if err != nil {
		return err
	}
	tool.mains = packages
	stale, err := tool.stale(ctx)
	if err != nil {
		return err
	}
	if err := tool.build(ctx, dir+string(filepath.Separator), stale); err != nil {
		return err
	}
	stop()
	b.meter.built()
	return nil
}

// newGoForRoot is like newGo, but for the root module that src belongs to.
func newGoForRoot(ctx context.Context, name string, src source, scratch string, m *meter) (*gotool, error) {
	tool, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("build the demo: %w; install Go 1.26 or later (https://go.dev/dl)", err)
	}
	dir, work := filepath.Dir(src.dir), "off"
	if src.dir == "" {
		if dir, err = download(ctx, tool, rootModule, src.version); err != nil {
			return nil, err
		}
	} else if _, work, err = src.folder(ctx, tool); err != nil {
		return nil, err
	}
	return &gotool{
		path: tool, dir: dir, meter: m, what: "the demo",
		env: []string{"GOWORK=" + work, "GOTMPDIR=" + scratch, "TMPDIR=" + scratch}, scratch: scratch,
	}, nil
}
