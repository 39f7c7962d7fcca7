package dev

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/trimtab-dev/trimtab/internal/kindgen"
)

// digest is the sum of a file's content.
type digest = [sha256.Size]byte

// snapshot returns the files that an operator may be made of: those of the module without its tests, hidden files, backups of
// editors, and programs.
func snapshot(root string) (map[string]digest, error) {
	all := map[string]digest{}
	err := kindgen.Walk(root, func(name string) error {
		base := path.Base(name)
		if strings.HasPrefix(base, ".") || strings.HasSuffix(base, "~") || strings.HasSuffix(base, "_test.go") {
			return nil
		}
		full := filepath.Join(root, filepath.FromSlash(name))
		info, err := os.Stat(full)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 != 0 {
			return gone(err)
		}
		content, err := os.ReadFile(full)
		if err == nil {
			all[name] = sha256.Sum256(content)
		}
		return gone(err)
	})
	return all, gone(err)
}

// gone drops the error of a file that has been removed meanwhile; its removal is an event of its own.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func same(a, b map[string]digest) bool { return maps.Equal(a, b) }

// settle is how long no file must change before a change counts: editors write several files, and some more than once.
const settle = 100 * time.Millisecond

// watch sends nil after changes of the module's files, once they have settled, and an error if it cannot go on. A change that
// nobody has received is sent once. It ends with ctx.
func watch(ctx context.Context, root string) (<-chan error, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := addFolders(w, root); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	saved := make(chan error, 1)
	go func() {
		defer w.Close()
		if err := relay(ctx, w, root, saved); err != nil {
			select {
			case saved <- err:
			case <-ctx.Done():
			}
		}
	}()
	return saved, nil
}

func relay(ctx context.Context, w *fsnotify.Watcher, root string, saved chan<- error) error {
	settled := time.NewTimer(settle)
	settled.Stop()
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.Events:
			settled.Reset(settle)
		case err := <-w.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) { // events were lost, and files have changed
				return err
			}
			settled.Reset(settle)
		case <-settled.C:
			if err := addFolders(w, root); err != nil {
				return err
			}
			select {
			case saved <- nil:
			default:
			}
		}
	}
}

// addFolders watches all folders of the module, new ones too.
func addFolders(w *fsnotify.Watcher, root string) error {
	return gone(filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return gone(err)
		}
		if !d.IsDir() {
			return nil
		}
		if name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		return gone(w.Add(name))
	}))
}
