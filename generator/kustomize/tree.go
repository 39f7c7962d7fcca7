package kustomize

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Kustomize sees a file system with two folders: the files of the generator, and the overlay.
const (
	filesRoot   = "/trimtab-files"
	overlayRoot = "/trimtab-overlay"
	overlayFile = overlayRoot + "/kustomization.yaml"
)

// tree are the files and folders of a file system, by their paths. It never changes.
type tree struct {
	files   map[string][]byte
	folders map[string]bool
}

// read reads a file system.
func read(fsys fs.FS) (*tree, error) {
	t := &tree{files: map[string][]byte{}, folders: map[string]bool{}}
	return t, fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			t.folders[name] = true
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is no regular file", name)
		}
		content, err := fs.ReadFile(fsys, name)
		t.files[name] = append([]byte{}, content...)
		return err
	})
}

// add adds a file and the folders that it is in.
func (t *tree) add(name string, content []byte) {
	t.files[name] = content
	for folder := path.Dir(name); !t.folders[folder]; folder = path.Dir(folder) {
		t.folders[folder] = true
	}
}

// complete adds a kustomization to a folder that has none and has objects.
func (t *tree) complete(folder string) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if t.files[path.Join(folder, name)] != nil {
			return
		}
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		inside, is := below(folder, name)
		if ext := path.Ext(name); is && (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(path.Base(name), ".") {
			fmt.Fprintf(&text, "- %q\n", inside)
		}
	}
	if text.Len() > 0 {
		t.add(path.Join(folder, konfig.DefaultKustomizationFileName()), []byte("resources:\n"+text.String()))
	}
}

// digest identifies the files, and something else.
func (t *tree) digest(more []byte) string {
	hash := sha256.New()
	hash.Write(more)
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		fmt.Fprintf(hash, "%q %d\n", name, len(t.files[name]))
		hash.Write(t.files[name])
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// layered is a tree with an overlay, as kustomize sees it. Kustomize calls only the methods that are here; the others are
// those of an empty file system in memory.
type layered struct {
	filesys.FileSystem

	tree    *tree
	overlay []byte
}

// with returns a file system for kustomize.
func (t *tree) with(overlay []byte) layered {
	return layered{FileSystem: filesys.MakeFsInMemory(), tree: t, overlay: overlay}
}

// find returns a file, and whether it is one, or whether it is a folder.
func (l layered) find(name string) (content []byte, file, folder bool) {
	name = path.Clean(path.Join("/", name))
	switch name {
	case "/", overlayRoot:
		return nil, false, true
	case overlayFile:
		return l.overlay, l.overlay != nil, false
	}
	relative, ok := below(filesRoot, name)
	if !ok {
		return nil, false, false
	}
	content, file = l.tree.files[relative]
	return content, file, l.tree.folders[relative]
}

// below returns a path relative to a folder, and whether it is in it.
func below(folder, name string) (string, bool) {
	if folder == "." {
		return name, name != ".." && !strings.HasPrefix(name, "../")
	}
	if folder == name {
		return ".", true
	}
	return strings.CutPrefix(name, folder+"/")
}

// CleanedAbs implements [filesys.FileSystem].
func (l layered) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	_, file, folder := l.find(name)
	clean := path.Clean(path.Join("/", name))
	switch {
	case file:
		return filesys.ConfirmedDir(path.Dir(clean)), path.Base(clean), nil
	case folder:
		return filesys.ConfirmedDir(clean), "", nil
	}
	return "", "", missing("find", name)
}

// ReadFile implements [filesys.FileSystem].
func (l layered) ReadFile(name string) ([]byte, error) {
	content, file, _ := l.find(name)
	if !file {
		return nil, missing("read", name)
	}
	return bytes.Clone(content), nil
}

// Exists implements [filesys.FileSystem].
func (l layered) Exists(name string) bool {
	_, file, folder := l.find(name)
	return file || folder
}

// IsDir implements [filesys.FileSystem].
func (l layered) IsDir(name string) bool {
	_, _, folder := l.find(name)
	return folder
}

func missing(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }
