package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// EnvBinary is the name of the environment variable with the path of a devcluster binary to use
// instead of building one.
const EnvBinary = "TRIMTAB_DEVCLUSTER"

// keptBinaries is how many binaries stay in the cache in addition to the one in use: enough for a few
// branches, at 200 MB each.
const keptBinaries = 2

// Binary finds, downloads or builds the devcluster binary that belongs to this build of trimtab, and returns
// its path. A released version is downloaded (see [EnvReleases]) and checked by its digest. What was not
// released, or cannot be downloaded, is built, which takes several minutes when nothing is cached. Either
// happens once per version, or once per state of the sources in a checkout, even if several processes call
// Binary at the same time.
//
// The binary is kept in the user's cache folder. An interrupted build leaves nothing there.
func Binary(ctx context.Context, progress Progress) (string, error) {
	if path := os.Getenv(EnvBinary); path != "" {
		return named(path)
	}
	cache, err := CacheFolder("devcluster")
	if err != nil {
		return "", err
	}
	const goTool = "go"
	src, err := ownSource(ctx, goTool)
	if err != nil {
		return "", err
	}
	b := builder{cache: cache, goTool: goTool, meter: newMeter(progress, filepath.Join(cache, "progress.json")), downloads: published()}
	return b.binary(ctx, src)
}

// CacheFolder returns the folder name in trimtab's part of the user's cache. It does not create it.
func CacheFolder(name string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache folder for the control plane: %w; set XDG_CACHE_HOME", err)
	}
	return filepath.Join(dir, "trimtab", name), nil
}

// named checks the binary that the user named.
func named(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("use the control plane that %s names: %w", EnvBinary, err)
	}
	if info.IsDir() {
		return "", fmt.Errorf("use the control plane that %s names: %q is a folder; name the devcluster binary in it", EnvBinary, path)
	}
	if runtime.GOOS != "windows" && info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("use the control plane that %s names: %q is not executable", EnvBinary, path)
	}
	return path, nil
}

// builder keeps binaries in a folder, in a subfolder for each key.
type builder struct {
	cache     string
	goTool    string
	meter     *meter
	downloads downloads
}

func (b *builder) binary(ctx context.Context, src source) (string, error) {
	key, err := src.key()
	if err != nil {
		return "", err
	}
	keys := []string{key}
	released, ok := b.downloads.of(src)
	if ok {
		keys = append(keys, released.key(src))
	}
	if path, ok := b.find(keys...); ok {
		return path, nil
	}
	if err := os.MkdirAll(b.cache, 0o700); err != nil {
		return "", unwritable(err)
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if path, ok := b.find(keys...); ok {
		return path, nil
	}
	if err := b.sweep(); err != nil {
		return "", unwritable(err)
	}
	if !ok || !b.fetched(ctx, released, released.key(src)) {
		if err := b.build(ctx, src, key); err != nil {
			return "", err
		}
	}
	path, ok := b.find(keys...)
	if !ok {
		return "", fmt.Errorf("the control plane was put into %q but is not there; has the cache just been cleaned?", path)
	}
	return path, nil
}

// fetched reports whether d could be downloaded. If not, progress says why, and that it is built.
func (b *builder) fetched(ctx context.Context, d asset, key string) bool {
	err := b.fetch(ctx, d, key)
	if err != nil && ctx.Err() == nil {
		b.meter.instead(err)
	}
	return err == nil
}

func executable(dir string) string {
	if runtime.GOOS == "windows" {
		return filepath.Join(dir, "devcluster.exe")
	}
	return filepath.Join(dir, "devcluster")
}

// find looks for a finished binary and marks it as used, so that sweep keeps it.
func (b *builder) find(keys ...string) (path string, found bool) {
	for _, key := range keys {
		dir := filepath.Join(b.cache, key)
		path = executable(dir)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		now := time.Now()
		_ = os.Chtimes(dir, now, now) // a read-only cache is never swept
		return path, true
	}
	return path, false
}

// lockPoll is how often a waiting process checks whether the build has ended.
const lockPoll = 200 * time.Millisecond

// lock waits until no other process is building. It polls, because the system has no lock whose wait
// can be cancelled.
func (b *builder) lock(ctx context.Context) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(b.cache, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unwritable(err)
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		got, err := TryLock(f)
		if got {
			return func() { _ = f.Close() }, nil
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock the control plane's cache: %w", err), f.Close())
		}
		b.meter.waiting()
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("wait for another process that is building the control plane: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

const unfinished = ".tmp"

// sweep removes what interrupted builds left, and all but the most recently used binaries. The caller
// holds the lock.
func (b *builder) sweep() error {
	entries, err := os.ReadDir(b.cache)
	if err != nil {
		return err
	}
	type kept struct {
		path string
		used time.Time
	}
	var finished []kept
	for _, e := range entries {
		info, err := e.Info()
		path := filepath.Join(b.cache, e.Name())
		if err != nil || !e.IsDir() {
			continue
		}
		if !strings.HasSuffix(path, unfinished) {
			finished = append(finished, kept{path, info.ModTime()})
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	slices.SortFunc(finished, func(a, b kept) int { return b.used.Compare(a.used) })
	for _, old := range finished[min(keptBinaries, len(finished)):] {
		if err := os.RemoveAll(old.path); err != nil {
			return err
		}
	}
	return nil
}

// build compiles src in a temporary folder and then moves the result to its final place.
func (b *builder) build(ctx context.Context, src source, key string) error {
	tmp := filepath.Join(b.cache, key+unfinished)
	finished := filepath.Join(tmp, "bin")
	scratch := filepath.Join(tmp, "scratch")
	defer os.RemoveAll(tmp)
	for _, dir := range []string{finished, scratch} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return unwritable(err)
		}
	}
	stop := b.meter.start()
	defer stop()
	tool, err := newGo(ctx, b.goTool, src, scratch, b.meter)
	if err != nil {
		return err
	}
	stale, err := tool.stale(ctx)
	if err != nil {
		return err
	}
	if err := tool.build(ctx, executable(finished), stale); err != nil {
		return err
	}
	if err := os.Rename(finished, filepath.Join(b.cache, key)); err != nil {
		return unwritable(err)
	}
	stop()
	b.meter.built()
	return nil
}

func unwritable(err error) error {
	return fmt.Errorf("keep the control plane in the cache: %w; set XDG_CACHE_HOME to a writable folder with 2 GB of free space", err)
}
