package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// source is what is committed, and a module proxy in folders that serves it under the version of the release.
type source struct {
	tree string
	// proxy, cache, bin and scratch are folders of the go command, apart from the user's own.
	proxy, cache, bin, scratch string
	env                        []string
}

func git(ctx context.Context, repository string, args ...string) (string, error) {
	out, err := output(exec.CommandContext(ctx, "git", append([]string{"-C", repository}, args...)...))
	return string(out), err
}

// output runs a command; what it writes to standard error, but for progress, becomes part of the error.
func output(cmd *exec.Cmd) ([]byte, error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	lines := slices.DeleteFunc(slices.Collect(strings.Lines(said.String())), func(l string) bool { return strings.HasPrefix(l, "go: downloading ") })
	return nil, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(strings.Join(lines, "")))
}

// export copies what is committed into work.
func export(ctx context.Context, repository, work string) (*source, error) {
	in := func(name string) string { return filepath.Join(work, name) }
	s := &source{tree: in("tree"), proxy: in("proxy"), cache: in("mod"), bin: in("go"), scratch: in("tmp")}
	archive, err := git(ctx, repository, "archive", "--format=tar", "HEAD")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Mkdir(s.tree, 0o700), os.Mkdir(s.cache, 0o700), os.Mkdir(s.scratch, 0o700)); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.tree)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for files := tar.NewReader(strings.NewReader(archive)); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return s, s.environment(ctx)
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(files)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(root.MkdirAll(path.Dir(h.Name), 0o700), root.WriteFile(h.Name, content, 0o600)); err != nil {
			return nil, err
		}
	}
}

// environment takes from the user's settings of Go where modules and compiled packages come from, and nothing that changes what
// is built.
func (s *source) environment(ctx context.Context) error {
	out, err := output(exec.CommandContext(ctx, "go", "env", "-json", "GOPROXY", "GOMODCACHE", "GOCACHE"))
	if err != nil {
		return err
	}
	var user struct{ GOPROXY, GOMODCACHE, GOCACHE string }
	if err := json.Unmarshal(out, &user); err != nil {
		return err
	}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GO") && !strings.HasPrefix(v, "CGO_") {
			s.env = append(s.env, v)
		}
	}
	s.env = append(s.env, "GOENV=off", "GOTOOLCHAIN=local", "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-modcacherw",
		"GOPROXY="+strings.Join([]string{fileURL(s.proxy), fileURL(filepath.Join(user.GOMODCACHE, "cache", "download")), user.GOPROXY}, ","),
		"GOSUMDB=off", // install compares with go.sum
		"GOCACHE="+user.GOCACHE, "GOMODCACHE="+s.cache, "GOPATH="+s.bin,
		"GOTMPDIR="+s.scratch, "TMPDIR="+s.scratch) // an interrupted go command leaves files there; the linker uses TMPDIR
	return nil
}

func fileURL(folder string) string {
	return "file:///" + strings.TrimPrefix(filepath.ToSlash(folder), "/")
}

// publish packs the module in a folder of the tree as a proxy does. One without a license of its own gets that of the repository.
func (s *source) publish(folder, version string) error {
	dir := filepath.Join(s.tree, folder)
	license := filepath.Join(dir, "LICENSE")
	if _, err := os.Stat(license); errors.Is(err, os.ErrNotExist) {
		text, err := os.ReadFile(filepath.Join(s.tree, "LICENSE"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(license, text, 0o600); err != nil {
			return err
		}
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	m := module.Version{Path: modfile.ModulePath(mod), Version: version}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, day})
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := zip.CreateFromDir(&packed, m, dir); err != nil {
		return err
	}
	at := filepath.Join(s.proxy, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": mod, version + ".zip": packed.Bytes()} {
		if err := os.WriteFile(filepath.Join(at, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// binary is a program for one platform.
type binary struct {
	program
	source *source
	goos   string
	path   string
	info   *buildinfo.BuildInfo
}

// linkerFlags leave out what only debuggers use, which is a third of the size.
const linkerFlags = "-s -w"

// install builds a program as a user of the released module does.
func (s *source) install(ctx context.Context, p program, version, goos, goarch string) (*binary, error) {
	mod, err := os.ReadFile(filepath.Join(s.tree, p.folder, "go.mod"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "-ldflags="+linkerFlags, modfile.ModulePath(mod)+"/"+p.main+"@"+version)
	cmd.Dir = s.cache
	cmd.Env = append(s.env, "GOOS="+goos, "GOARCH="+goarch)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that compilers end as well
	cmd.WaitDelay = time.Minute
	if _, err := output(cmd); err != nil {
		return nil, err
	}
	b := &binary{program: p, source: s, goos: goos, path: filepath.Join(s.bin, "bin")}
	if goos != runtime.GOOS || goarch != runtime.GOARCH {
		b.path = filepath.Join(b.path, goos+"_"+goarch)
	}
	b.path = filepath.Join(b.path, b.file(p.name))
	if b.info, err = buildinfo.ReadFile(b.path); err != nil {
		return nil, err
	}
	return b, b.check(version)
}

// file returns the name of an executable file.
func (b *binary) file(name string) string {
	if b.goos == "windows" {
		return name + ".exe"
	}
	return name
}

// check compares the modules in the binary with those that the repository's go.sum vouches for.
func (b *binary) check(version string) error {
	if b.info.Main.Version != version {
		return fmt.Errorf("%s says that it is %s, not %s", b.name, b.info.Main.Version, version)
	}
	sums, err := os.ReadFile(filepath.Join(b.source.tree, b.folder, "go.sum"))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // no dependency
		return err
	}
	for _, m := range b.info.Deps {
		if !strings.Contains("\n"+string(sums), "\n"+m.Path+" "+m.Version+" "+m.Sum+"\n") {
			return fmt.Errorf("%s contains %s %s with the checksum %s, which go.sum does not list", b.name, m.Path, m.Version, m.Sum)
		}
	}
	return nil
}
