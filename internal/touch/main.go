//go:build unix

// Command touch gives files and symbolic links of a checkout times that follow from their content, and folders times that follow from the
// names in them. go test keeps the result of a test that has read files as long as their sizes and times stay, and in a fresh clone all
// files are new. Files that differ from the last commit keep their times, and so do folders with files that git does not know.
//
//	go run ./internal/touch
package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if err := settle(context.Background(), "."); err != nil {
		fmt.Fprintln(os.Stderr, "touch:", err)
		os.Exit(1)
	}
}

// settle sets the times below dir, the top of a checkout.
func settle(ctx context.Context, dir string) error {
	staged, err := git(ctx, dir, "ls-files", "-z", "--stage") // MODE HASH STAGE\tNAME
	if err != nil {
		return err
	}
	differ, err := git(ctx, dir, "diff", "-z", "--name-only", "--no-renames", "HEAD")
	if err != nil {
		return err
	}
	others, err := git(ctx, dir, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	contents := map[string]string{}         // by file or folder
	entries := map[string]map[string]bool{} // by folder
	for _, line := range staged {
		about, name, ok := strings.Cut(line, "\t")
		if !ok {
			return fmt.Errorf("git ls-files says %q", line)
		}
		if !slices.Contains(differ, name) {
			contents[name] = about
		}
		for at := name; at != "."; at = path.Dir(at) {
			folder := path.Dir(at)
			if entries[folder] == nil {
				entries[folder] = map[string]bool{}
			}
			entries[folder][path.Base(at)] = true
		}
	}
	for folder, names := range entries {
		contents[folder] = strings.Join(slices.Sorted(maps.Keys(names)), "\x00")
	}
	for _, name := range others {
		folder := path.Dir(name)
		for entries[folder] == nil { // git knows nothing in it
			folder = path.Dir(folder)
		}
		delete(contents, folder)
	}
	for name, content := range contents {
		if err := set(dir, name, content); err != nil {
			return err
		}
	}
	return nil
}

// set gives a file, a folder, or a symbolic link itself the time of its content. A file that is gone is none.
func set(dir, name, content string) error {
	at := unix.NsecToTimespec(timeOf(content).UnixNano())
	file := filepath.Join(dir, filepath.FromSlash(name))
	err := unix.UtimesNanoAt(unix.AT_FDCWD, file, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("cannot set the time of %s: %w", file, err)
}

// timeOf is a time between 2001 and 2018, another one for each content.
func timeOf(content string) time.Time {
	sum := sha256.Sum256([]byte(content))
	const first, seconds = 1_000_000_000, 1 << 29
	return time.Unix(first+int64(binary.BigEndian.Uint32(sum[:])%seconds), int64(binary.BigEndian.Uint32(sum[4:])%1_000_000_000))
}

// git is the output of a command that ends each line with a zero byte.
func git(ctx context.Context, dir string, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
}
