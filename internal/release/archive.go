package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/mod/module"
)

// day is the time of all files, so that two archives of the same files have the same bytes. zip knows no earlier one.
var day = time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC)

// entry is a file of an archive, or a link to another one.
type entry struct {
	name    string
	mode    int64
	content []byte
	link    string
}

// archive packs the program, under both of its names, and the licenses of all that is linked into it.
func (b *binary) archive() ([]byte, error) {
	content, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	entries := []entry{{name: b.file(b.name), mode: 0o755, content: content}}
	if b.alias != "" && b.goos == "windows" { // where links need a permission
		entries = append(entries, entry{name: b.file(b.alias), mode: 0o755, content: content})
	} else if b.alias != "" {
		entries = append(entries, entry{name: b.alias, mode: 0o777, link: b.name})
	}
	licenses, err := b.licenses()
	if err != nil {
		return nil, err
	}
	entries = append(entries, licenses...)
	var packed bytes.Buffer
	if b.goos == "windows" {
		err = zipped(&packed, entries)
	} else {
		err = tarred(&packed, entries)
	}
	return packed.Bytes(), err
}

func tarred(to io.Writer, entries []entry) error {
	compressed := gzip.NewWriter(to)
	w := tar.NewWriter(compressed)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: day, Format: tar.FormatPAX}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(e.content); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), compressed.Close())
}

func zipped(to io.Writer, entries []entry) error {
	w := zip.NewWriter(to)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: day}
		h.SetMode(os.FileMode(e.mode))
		file, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := file.Write(e.content); err != nil {
			return err
		}
	}
	return w.Close()
}

// license is the name of a file that has to go with copies of a module.
var license = regexp.MustCompile(`(?i)^(un)?(licen[sc]e|copying|copyright|notice|patents)([-._].*)?$`)

// licenses returns the licenses of trimtab, of the modules that are linked, and of Go.
func (b *binary) licenses() ([]entry, error) {
	root, err := output(exec.Command("go", "env", "GOROOT")) //nolint:noctx // prints a constant
	if err != nil {
		return nil, err
	}
	entries, err := texts(filepath.Join(b.source.tree, b.folder), "")
	if err != nil {
		return nil, err
	}
	std, err := texts(strings.TrimSpace(string(root)), "licenses/std")
	if err != nil {
		return nil, err
	}
	entries = append(entries, std...)
	for _, m := range b.info.Deps {
		dir, err := b.source.folder(m)
		if err != nil {
			return nil, err
		}
		own, err := texts(dir, "licenses/"+m.Path)
		if err != nil {
			return nil, err
		}
		entries = append(entries, own...)
	}
	return entries, nil
}

// folder returns the folder of a module in the cache.
func (s *source) folder(m *debug.Module) (string, error) {
	name, err := module.EscapePath(m.Path)
	if err != nil {
		return "", err
	}
	version, err := module.EscapeVersion(m.Version)
	return filepath.Join(s.cache, filepath.FromSlash(name)+"@"+version), err
}

// texts returns the licenses in a folder, of which there must be one.
func texts(dir, to string) (entries []entry, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if !f.Type().IsRegular() || !license.MatchString(f.Name()) || path.Ext(f.Name()) == ".go" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: path.Join(to, f.Name()), mode: 0o644, content: content})
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s has no license, so nothing that contains it can be released", path.Join(to, filepath.Base(dir)))
	}
	return entries, nil
}
