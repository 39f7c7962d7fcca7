package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
	"github.com/trimtab-dev/trimtab/internal/gobuild"
	"github.com/trimtab-dev/trimtab/testenv"
)

// What somebody who has nothing may be asked for until an object is Ready. The README promises the first two.
const (
	mostCommands = 3
	mostFiles    = 8
	mostEdits    = 10
	mostSeconds  = 300 // on a busy machine; the test prints what it took
)

// TestJourney goes from an empty folder to an object that is Ready, by the commands of the README, and has the operator's own
// test pass. The other forms of operators have the same commands.
func TestJourney(t *testing.T) {
	commands := readmeCommands(t)
	if len(commands) > mostCommands {
		t.Errorf("the README shows %d commands, want at most %d: %q", len(commands), mostCommands, commands)
	}
	chart, err := filepath.Abs("../../samples/chart/chart")
	if err != nil {
		t.Fatal(err)
	}
	gobuild.Reads(t, chart)
	newcomer(t)
	for _, form := range []struct{ name, flags, object string }{
		{"external", "--external", "Widget"},
		{"loop", "--loop --group widgets.example.org", "Widget"},
		{"component", "--component --module github.com/your-name/widgets", "Widget"},
		{"chart", "--component --chart '" + chart + "'", "Widget"},
	} {
		t.Run(form.name, func(t *testing.T) {
			j := journey{t: t, folder: t.TempDir()}
			made := j.run(strings.Replace(commands[0], "--external", form.flags, 1))
			j.count()
			gobuild.Builds(t, filepath.Join(j.folder, "widgets"), "./...")
			tested := j.run("cd widgets && go test ./... && go vet ./... && test -z \"$(gofmt -l .)\" && trimtab gen --check && go mod tidy -diff")
			ready := j.develop(commands[1])
			t.Logf("the commands took %.1fs and %.1fs until the object was Ready; the tests %.1fs", made.Seconds(), ready.Seconds(), tested.Seconds())
			if all := made + ready; all > mostSeconds*time.Second {
				t.Errorf("Ready after %s, want at most %d s", all, mostSeconds)
			}
		})
	}
}

// readmeCommands returns the commands of the block in the README that begins with trimtab new. The page about the first operator
// has the same.
func readmeCommands(t *testing.T) []string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	const fence = "```sh\ntrimtab new "
	_, block, found := strings.Cut(string(readme), fence)
	block, _, closed := strings.Cut("trimtab new "+block, "\n```")
	if !found || !closed {
		t.Fatal("the README shows no trimtab new")
	}
	page, err := os.ReadFile("../../docs/first-operator.md")
	if err != nil {
		t.Fatal(err)
	}
	if indented := "    " + strings.ReplaceAll(block, "\n", "\n    ") + "\n"; !strings.Contains(string(page), indented) {
		t.Errorf("docs/first-operator.md does not show the commands of the README:\n%s", indented)
	}
	return strings.Split(block, "\n")
}

// newcomer makes the environment that of somebody with the program trimtab in the path, and nothing else but the caches of Go
// and the control plane.
func newcomer(t *testing.T) {
	t.Helper()
	binary, err := controlplane.Binary(t.Context(), controlplane.Print(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	goCache, modCache, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := "#!/bin/sh\n" + envMain + "=1 exec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "trimtab"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"PATH": bin + string(os.PathListSeparator) + os.Getenv("PATH"), "GOCACHE": goCache, "GOMODCACHE": modCache,
		"XDG_CACHE_HOME": t.TempDir(), controlplane.EnvBinary: binary, "KUBECONFIG": "",
	} {
		t.Setenv(name, value)
	}
}

// journey is one way, in a folder that was empty.
type journey struct {
	t      *testing.T
	folder string
}

// run runs a command of the shell to its end, in the folder, and returns how long it took.
func (j *journey) run(command string) time.Duration {
	j.t.Helper()
	began := time.Now()
	cmd := exec.CommandContext(j.t.Context(), "sh", "-c", command)
	cmd.Dir = j.folder
	if out, err := cmd.CombinedOutput(); err != nil {
		j.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return time.Since(began)
}

// count compares the files, and the places that are to be edited, with the budget.
func (j *journey) count() {
	j.t.Helper()
	files, edits := 0, 0
	root := os.DirFS(filepath.Join(j.folder, "widgets"))
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == "chart": // it was there before
			return fs.SkipDir
		case d.IsDir() || name == "go.sum": // which belongs to go.mod
			return nil
		}
		text, err := fs.ReadFile(root, name)
		files, edits = files+1, edits+strings.Count(string(text), "TODO")
		return err
	})
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Logf("%d files, %d places to edit", files, edits)
	if files > mostFiles || edits == 0 || edits > mostEdits {
		j.t.Errorf("%d files with %d places to edit, want at most %d, and 1 to %d", files, edits, mostFiles, mostEdits)
	}
}

// develop runs trimtab dev until the object of the example is Ready, and returns how long that took. Ctrl-C ends it, and leaves
// nothing.
func (j *journey) develop(command string) time.Duration {
	j.t.Helper()
	began := time.Now()
	// In place of the shell, whose end by Ctrl-C would be taken for its own.
	cmd := exec.CommandContext(j.t.Context(), "sh", "-c", strings.Replace(command, "trimtab dev", "exec trimtab dev", 1))
	cmd.Dir = j.folder
	cmd.Env = append(os.Environ(), "TMPDIR="+j.t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		j.t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		j.t.Fatal(err)
	}
	var log strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "✔ examples") {
		fmt.Fprintln(&log, lines.Text())
		if strings.Contains(lines.Text(), "✘") {
			break
		}
	}
	if strings.Contains(lines.Text(), "✔ examples") {
		j.awaitReady()
		j.look(log.String())
	} else {
		j.t.Error("the example was not applied")
	}
	took := time.Since(began)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) // as a terminal does
	for lines.Scan() {
		fmt.Fprintln(&log, lines.Text())
	}
	if err := cmd.Wait(); err != nil || j.t.Failed() {
		j.t.Errorf("%s: %v\n%s%s", command, err, &log, &complaints)
	}
	if left, err := os.ReadDir(strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], "TMPDIR=")); err != nil || len(left) > 0 {
		j.t.Errorf("left behind: %v, %v", left, err)
	}
	return took
}

// look opens the dashboard whose address was printed. The page sends the key that is behind the sign # of the address.
func (j *journey) look(printed string) {
	j.t.Helper()
	_, address, _ := strings.Cut(printed, "dashboard: ")
	address, _, _ = strings.Cut(address, "\n")
	page, key, _ := strings.Cut(address, "#key=")
	for given, want := range map[string]int{key: http.StatusOK, "": http.StatusForbidden} {
		request, err := http.NewRequestWithContext(j.t.Context(), http.MethodGet, page+"api/attention", nil)
		if err != nil {
			j.t.Fatal(err)
		}
		request.Header.Set("X-Trimtab-Key", given)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			j.t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			j.t.Errorf("the dashboard at %s answers %s with the key %q, want %d", address, answer.Status, given, want)
		}
	}
}

func (j *journey) awaitReady() {
	j.t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(os.Getenv("XDG_CACHE_HOME"), "trimtab", "cluster", "kubeconfig"))
	if err != nil {
		j.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(j.folder, "widgets", "example.yaml"))
	if err != nil {
		j.t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &o.Object); err != nil {
		j.t.Fatal(err)
	}
	o.SetNamespace("default")
	testenv.Wait(j.t, testenv.Client(j.t, cfg), o, "the object to be Ready", func(u *unstructured.Unstructured) bool {
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool {
			fields, _ := c.(map[string]any)
			return fields["type"] == "Ready" && fields["status"] == "True"
		})
	})
}
