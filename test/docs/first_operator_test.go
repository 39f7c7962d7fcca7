package docs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

// TestFirstOperator follows docs/first-operator.md: it writes its files, runs its commands in
// order, and compares their output with what the page shows.
//
// Two commands need a published version of trimtab. They are replaced by ones that use this
// checkout; everything else is run as it stands on the page.
func TestFirstOperator(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t, map[string]string{
		"go get -tool github.com/trimtab-dev/trimtab/cmd/trimtab@latest": "go mod edit -require=github.com/trimtab-dev/trimtab@v0.0.0 '-replace=github.com/trimtab-dev/trimtab=" + root + "' -tool=github.com/trimtab-dev/trimtab/cmd/trimtab\n" +
			"cp '" + root + "/go.sum' go.sum", // so that nothing of ours is asked of a checksum database
		"go install github.com/trimtab-dev/trimtab/devcluster/cmd/kubectl@latest": "go build -C '" + root + "/devcluster' -o \"$GOBIN/kubectl\" ./cmd/kubectl",
	})
	for _, b := range readPage(t, filepath.Join(root, "docs", "first-operator.md")) {
		r.follow(b)
	}
	for command := range r.instead {
		t.Errorf("the page does not show %q", command)
	}
	if r.operator != nil {
		t.Error("the page does not stop the operator")
	}
	// With another version of one of them, Go compiles Kubernetes again.
	const modules = "go list -m k8s.io/api k8s.io/apimachinery k8s.io/apiextensions-apiserver k8s.io/client-go sigs.k8s.io/controller-runtime"
	if diff := cmp.Diff(r.run("cd '"+root+"'\nGOWORK=off "+modules+"\ncd - >&2"), r.run(modules)); diff != "" {
		t.Errorf("modules that trimtab is built with (-trimtab +reader):\n%s", diff)
	}
}

// reader is somebody who follows a page, in a temporary folder and with a cache of their own,
// but with the caches of Go.
type reader struct {
	t       *testing.T
	state   string // a script that restores the working folder and the environment
	instead map[string]string
	// operator is what runs in the second terminal.
	operator *exec.Cmd
	ended    chan struct{}
	log      *bytes.Buffer
}

func newReader(t *testing.T, instead map[string]string) *reader {
	t.Helper()
	binary, err := controlplane.Binary(t.Context(), controlplane.Print(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	bin, err := controlplane.CacheFolder("docs") // kept, so that the next run does not link kubectl
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	goCache, modCache, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	for name, value := range map[string]string{
		"GOCACHE": goCache, "GOMODCACHE": modCache, "GOBIN": bin, "PATH": bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		"XDG_CACHE_HOME": t.TempDir(), "KUBECACHEDIR": t.TempDir(), controlplane.EnvBinary: binary,
	} {
		t.Setenv(name, value)
	}
	r := &reader{t: t, state: filepath.Join(t.TempDir(), "state"), instead: instead}
	if err := os.WriteFile(r.state, []byte("cd '"+t.TempDir()+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.cleanUp)
	return r
}

// follow does what a block of the page says.
func (r *reader) follow(b block) {
	r.t.Helper()
	switch {
	case b.file != "":
		r.run("mkdir -p \"$(dirname '" + b.file + "')\"\ncat > '" + b.file + "' <<'END OF FILE'\n" + strings.Join(b.text, "\n") + "\nEND OF FILE")
	case b.language == "console":
		for _, e := range b.examples() {
			if diff := cmp.Diff(alike(e.output), alike(r.run(e.command))); diff != "" {
				r.t.Errorf("output of %q (-page +run):\n%s", e.command, diff)
			}
		}
	case b.language == "sh" && b.mode == "second-terminal":
		r.start(b)
	case b.language == "sh":
		if b.mode == "after-ctrl-c" {
			r.interrupt()
		}
		for _, line := range b.text {
			if other, ok := r.instead[line]; ok {
				delete(r.instead, line)
				line = other
			}
			r.run(line)
		}
	default:
		r.t.Fatalf("line %d: a block of %q without the name of a file before it", b.line, b.language)
	}
}

// script is a shell script that goes on where the one before it ended.
func (r *reader) script(commands string) string {
	return fmt.Sprintf("set -eu\n. '%s'\n%s\n", r.state, commands)
}

// run runs commands and returns what they write to standard output.
func (r *reader) run(commands string) string {
	r.t.Helper()
	keep := fmt.Sprintf("{ echo \"cd '$PWD'\"; export -p; } > '%s'\n", r.state)
	cmd := exec.CommandContext(r.t.Context(), "sh", "-c", r.script(commands)+keep)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		r.t.Fatalf("%v in:\n%s\n%s%s\nthe operator's log:\n%s", err, commands, &out, &complaints, r.operatorLog())
	}
	return out.String()
}

// start runs the last command of a block in the background until [reader.interrupt], and
// returns when the operator works.
func (r *reader) start(b block) {
	r.t.Helper()
	last := len(b.text) - 1
	commands := strings.Join(append(append([]string{}, b.text[:last]...), "exec "+b.text[last]), "\n")
	cmd := exec.CommandContext(context.WithoutCancel(r.t.Context()), "sh", "-c", r.script(commands))
	log, err := cmd.StderrPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.operator, r.ended, r.log = cmd, make(chan struct{}), &bytes.Buffer{}
	works := make(chan struct{})
	go func() {
		defer close(r.ended)
		lines := bufio.NewScanner(io.TeeReader(log, r.log))
		for found := false; lines.Scan(); {
			if !found && strings.Contains(lines.Text(), "Starting workers") {
				found = true
				close(works)
			}
		}
	}()
	select {
	case <-works:
	case <-r.ended:
		r.t.Fatalf("the operator ended: %v\n%s", cmd.Wait(), r.operatorLog())
	}
}

// operatorLog is the log of the operator once it has ended. While it runs the log belongs to
// the goroutine that reads it.
func (r *reader) operatorLog() string {
	if r.operator == nil {
		return "(not started)"
	}
	_ = r.operator.Process.Kill()
	<-r.ended
	return r.log.String()
}

// interrupt presses Ctrl-C in the second terminal.
func (r *reader) interrupt() {
	r.t.Helper()
	if err := r.operator.Process.Signal(os.Interrupt); err != nil {
		r.t.Fatal(err)
	}
	<-r.ended
	if err := r.operator.Wait(); err != nil {
		r.t.Errorf("the operator: %v\n%s", err, r.log)
	}
	r.operator = nil
}

// cleanUp ends what is left after a failure.
func (r *reader) cleanUp() {
	if r.operator != nil {
		_ = r.operator.Process.Kill()
		<-r.ended
		_ = r.operator.Wait()
	}
	cmd := exec.Command("sh", "-c", r.script("[ ! -f go.mod ] || go tool trimtab cluster down")) //nolint:noctx // the test's context has ended
	if out, err := cmd.CombinedOutput(); err != nil && !errors.Is(err, exec.ErrNotFound) {
		r.t.Logf("stop the cluster: %v\n%s", err, out)
	}
}
