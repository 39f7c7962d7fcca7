//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestSettle clones a repository twice: the times are the same, except of what has changed.
func TestSettle(t *testing.T) {
	t.Parallel()
	origin := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
	write := func(dir, name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	clone := func() string {
		t.Helper()
		dir := t.TempDir()
		run("git", "clone", "-q", origin, dir)
		return dir
	}
	settled := func(dir string) map[string]time.Time {
		t.Helper()
		if err := settle(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		times := map[string]time.Time{}
		for _, name := range []string{".", "a", "a/one", "a/deep", "a/deep/two", "b", "b/with space", "b/link"} {
			info, err := os.Lstat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			times[name] = info.ModTime()
		}
		return times
	}
	run("git", "init", "-q", origin)
	write(origin, "a/one", "1")
	write(origin, "a/deep/two", "2")
	write(origin, "b/with space", "3")
	if err := os.Symlink("with space", filepath.Join(origin, "b", "link")); err != nil {
		t.Fatal(err)
	}
	run("git", "-C", origin, "add", ".")
	run("git", "-C", origin, "commit", "-q", "-m", "first")
	first, edited := clone(), clone()
	before := settled(first)
	write(edited, "a/one", "edited")
	info, err := os.Stat(filepath.Join(edited, "a/one"))
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range settled(edited) {
		if same := at.Equal(before[name]); same != (name != "a/one") {
			t.Errorf("%s has the same time in another clone: %t", name, same)
		}
		if name == "a/one" && !at.Equal(info.ModTime()) {
			t.Errorf("the time of an edited file was set: %v, it was %v", at, info.ModTime())
		}
	}
	write(origin, "a/deep/two", "4") // as long as it was
	run("git", "-C", origin, "commit", "-q", "-a", "-m", "second")
	second := settled(clone())
	for name, at := range second {
		if same := at.Equal(before[name]); same == (name == "a/deep/two") {
			t.Errorf("after a file has changed, %s has the same time: %t", name, same)
		}
	}
	write(origin, "a/new", "")
	run("git", "-C", origin, "add", ".")
	run("git", "-C", origin, "commit", "-q", "-m", "third")
	for name, at := range settled(clone()) {
		if same := at.Equal(second[name]); same == (name == "a") {
			t.Errorf("after a file was added to a, %s has the same time: %t", name, same)
		}
	}
	write(first, "a/new/untracked", "")
	for name, at := range settled(first) {
		if same := at.Equal(before[name]); same == (name == "a") {
			t.Errorf("with a file in a that git does not know, %s has the same time: %t", name, same)
		}
	}
	if err := os.Remove(filepath.Join(first, "b/with space")); err != nil {
		t.Fatal(err)
	}
	if err := settle(t.Context(), first); err != nil {
		t.Errorf("with a file that was removed: %v", err)
	}
	if err := settle(t.Context(), t.TempDir()); err == nil {
		t.Error("no error where there is no checkout")
	}
}
