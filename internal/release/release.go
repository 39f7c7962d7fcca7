package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

// program is a command that is released.
type program struct {
	name string
	// folder is that of its module in the repository, and main that of the command in the module.
	folder, main string
	// alias is a second name in the archive.
	alias     string
	platforms []string
}

// controlPlane is built before trimtab, which knows its digests.
func controlPlane() program {
	return program{name: "devcluster", folder: "devcluster", main: "cmd/devcluster", platforms: []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}}
}

func trimtab() program {
	return program{name: "trimtab", folder: ".", main: "cmd/trimtab", alias: "kubectl-trimtab", platforms: append(controlPlane().platforms, "windows/amd64", "windows/arm64")}
}

// release is what is made.
type release struct {
	version    string
	repository string
	out        string
	// platforms are those to build for; none means all.
	platforms []string
	log       io.Writer
	// digests are the lines of SHA256SUMS.
	digests []string
}

// make makes all files.
func (r *release) make(ctx context.Context) error {
	notes, err := r.check(ctx)
	if err != nil {
		return err
	}
	if err := r.empty(); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "trimtab-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	s, err := export(ctx, r.repository, work)
	if err != nil {
		return err
	}
	if err := s.publish(controlPlane().folder, r.version); err != nil {
		return err
	}
	if err := r.build(ctx, s, controlPlane()); err != nil {
		return err
	}
	listed, err := r.list(ctx, s)
	if err != nil {
		return err
	}
	if err := s.publish(trimtab().folder, r.version); err != nil {
		return err
	}
	if err := r.build(ctx, s, trimtab()); err != nil {
		return err
	}
	if err := r.write("notes.md", notes); err != nil {
		return err
	}
	slices.SortFunc(r.digests, func(a, b string) int { return strings.Compare(a[sha256.Size*2:], b[sha256.Size*2:]) })
	if err := os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(strings.Join(r.digests, "")), 0o644); err != nil { //nolint:gosec // files for everybody
		return err
	}
	fmt.Fprintf(r.log, "%d files are in %s\n", len(r.digests)+1, r.out)
	if !listed {
		fmt.Fprintf(r.log, "%s has changed: commit it before you set the tags\n", controlplane.ReleasedFile)
	}
	fmt.Fprintf(r.log, "to publish: set the tags %[1]s, devcluster/%[1]s and kubesim/%[1]s, push them, and upload the files\n", r.version)
	return nil
}

// check finds what would make a bad release before minutes are spent on it, and returns the section of the changelog.
func (r *release) check(ctx context.Context) (notes []byte, err error) {
	if semver.Canonical(r.version) != r.version || r.version == "" {
		return nil, fmt.Errorf("-version %q is not a version; use one like v0.1.0", r.version)
	}
	for _, p := range r.platforms {
		if !slices.Contains(trimtab().platforms, p) {
			return nil, fmt.Errorf("-platforms %q: choose from %s", p, strings.Join(trimtab().platforms, ","))
		}
	}
	changed, err := git(ctx, r.repository, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(changed) {
		if file := strings.TrimSpace(line[2:]); file != controlplane.ReleasedFile {
			return nil, fmt.Errorf("%s is not committed as it is; commit or remove it, because a release is what a tag names", file)
		}
	}
	text, err := os.ReadFile(filepath.Join(r.repository, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	plain := strings.TrimPrefix(strings.TrimSuffix(r.version, semver.Prerelease(r.version)), "v")
	for section := range bytes.SplitSeq(text, []byte("\n## ")) {
		title, rest, _ := bytes.Cut(section, []byte("\n"))
		if first, _, _ := bytes.Cut(title, []byte(" ")); string(first) == plain {
			return append([]byte("# trimtab "+r.version+"\n"), rest...), nil
		}
	}
	return nil, fmt.Errorf("CHANGELOG.md has no section \"## %s\"; say there what users will notice", plain)
}

// empty makes the folder for the files, and removes the files of another release.
func (r *release) empty() error {
	old, err := os.ReadDir(r.out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range old {
		if e.Type().IsRegular() { // not the folder site, which make docs makes
			if err := os.Remove(filepath.Join(r.out, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.MkdirAll(r.out, 0o755) //nolint:gosec // files for everybody
}

// build makes the archives of a program, and the lists of their modules.
func (r *release) build(ctx context.Context, s *source, p program) error {
	for _, platform := range p.platforms {
		if len(r.platforms) > 0 && !slices.Contains(r.platforms, platform) {
			continue
		}
		fmt.Fprintf(r.log, "build %s for %s\n", p.name, platform)
		goos, goarch := path.Split(platform)
		goos = strings.TrimSuffix(goos, "/")
		b, err := s.install(ctx, p, r.version, goos, goarch)
		if err != nil {
			return err
		}
		archive, err := b.archive()
		if err != nil {
			return err
		}
		list, err := b.modules()
		if err != nil {
			return err
		}
		name := controlplane.FileName(p.name, r.version, goos, goarch)
		if err := errors.Join(r.write(name, archive), r.write(name+".cdx.json", list)); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file of the release.
func (r *release) write(name string, content []byte) error {
	sum := sha256.Sum256(content)
	r.digests = append(r.digests, hex.EncodeToString(sum[:])+"  "+name+"\n")
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644) //nolint:gosec // files for everybody
}

// list writes the digests of the control planes into the source of trimtab, and reports whether they were there already.
func (r *release) list(ctx context.Context, s *source) (listed bool, err error) {
	programs := slices.DeleteFunc(slices.Clone(r.digests), func(line string) bool { return strings.HasSuffix(line, ".cdx.json\n") })
	lines := strings.Join(programs, "")
	exported := filepath.Join(s.tree, filepath.FromSlash(controlplane.ReleasedFile))
	committed, err := os.ReadFile(exported)
	if err != nil {
		return false, err
	}
	if string(committed) == lines {
		return true, nil
	}
	if tag, err := git(ctx, r.repository, "tag", "--list", r.version); err != nil || tag != "" {
		return false, errors.Join(err, fmt.Errorf("the control planes differ from those that %s lists in %s; use the version of Go with which they were built",
			r.version, controlplane.ReleasedFile))
	}
	for _, file := range []string{exported, filepath.Join(r.repository, filepath.FromSlash(controlplane.ReleasedFile))} {
		if err := os.WriteFile(file, []byte(lines), 0o644); err != nil { //nolint:gosec // source
			return false, err
		}
	}
	return false, nil
}
