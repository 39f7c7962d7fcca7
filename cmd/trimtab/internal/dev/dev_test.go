package dev

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/inspect"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/kubectl"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/scaffold"
	"github.com/trimtab-dev/trimtab/internal/controlplane"
	"github.com/trimtab-dev/trimtab/internal/gobuild"
	"github.com/trimtab-dev/trimtab/internal/running"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// measure is the logic of the operator under test. It writes down when a pass begins and ends, and a pass over an object with the
// message "Slow." waits for a file.
const measure = `package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

func measure(_ context.Context, message string) (int32, error) {
	note("begin " + message)
	for message == "Slow." {
		if _, err := os.Stat(os.Getenv("DEV_TEST_GATE")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	note("end " + message)
	return LETTERS, nil
}

func note(text string) {
	f, err := os.OpenFile(os.Getenv("DEV_TEST_NOTES"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, os.Getpid(), text)
}
`

// TestDev follows somebody who writes an operator: a first start, a change during a pass, a mistake in the syntax, a change that
// does not fit the objects, and Ctrl-C.
func TestDev(t *testing.T) {
	cfg := testenv.Start(t)
	root := project(t)
	temporary, notes, gate := t.TempDir(), filepath.Join(t.TempDir(), "notes"), filepath.Join(t.TempDir(), "gate")
	t.Setenv("GOWORK", "off")
	t.Setenv("DEV_TEST_NOTES", notes)
	t.Setenv("DEV_TEST_GATE", gate)
	out := newLines()
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	debug := &Address{}
	go func() {
		ended <- Run(ctx, Options{Debug: debug, Root: root, Config: cfg, Temporary: true, Folder: temporary, Out: out, Kubectl: kubectl.Commands{Flags: []string{"--kubeconfig=/a/b"}}})
		out.close()
	}()
	t.Cleanup(func() {
		interrupt()
		if t.Failed() {
			t.Logf("the session:\n%s", out)
		}
	})
	c := testenv.Client(t, cfg)
	object := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("example.com/v1alpha1")
		u.SetKind("Widget")
		u.SetNamespace("default")
		u.SetName(name)
		return u
	}
	letters := func(want int64) func(*unstructured.Unstructured) bool {
		return func(u *unstructured.Unstructured) bool {
			have, _, _ := unstructured.NestedInt64(u.Object, "status", "letters")
			return have == want && rowOf(u).ready
		}
	}

	out.await(t, "✔ examples")
	testenv.Wait(t, c, object("first"), "the example to be Ready", letters(1))
	out.await(t, "Widget/first.* → Ready")
	pid := out.pid(t)
	before := asked(t, debug)

	// A change while a pass runs.
	slow := object("slow")
	slow.Object["spec"] = map[string]any{"message": "Slow."}
	if err := c.Create(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, notes, "begin Slow.")
	mark := out.mark()
	write(t, root, "measure.go", strings.Replace(measure, "LETTERS", "2", 1))
	write(t, root, "notes.go", "package main\n") // another file of the same change
	out.await(t, "✔ definitions")
	write(t, filepath.Dir(gate), filepath.Base(gate), "")
	out.await(t, "after the file was saved")
	t.Logf("the hand-over: %s", out.since(mark))
	testenv.Wait(t, c, object("first"), "the new logic", letters(2))
	testenv.Wait(t, c, object("slow"), "the new logic", letters(2))
	if n := strings.Count(out.since(mark), "✔ build"); n != 1 {
		t.Errorf("%d builds after one change of two files, want 1", n)
	}
	if strings.Contains(out.since(mark), "did not end well") {
		t.Error("the old operator did not end with 0")
	}
	next := out.pid(t)
	if pid == next || alive(pid) {
		t.Errorf("the operator was process %d, is process %d; the old one is alive: %t", pid, next, alive(pid))
	}
	checkNotes(t, notes, pid, next)
	if after := asked(t, debug); !after.Started.After(before.Started) {
		t.Errorf("the process at the debug address was started at %s, the one before at %s", after.Started, before.Started)
	}

	// What does not compile replaces nothing.
	mark = out.mark()
	write(t, root, "notes.go", "package main\n\nfunc broken( {\n")
	out.await(t, "The operator that runs goes on|after the file was saved")
	if text := out.since(mark); !strings.Contains(text, "notes.go:3:") || !strings.Contains(text, "✘ build") {
		t.Errorf("the compiler's words are missing:\n%s", text)
	}

	// Neither does what does not fit the objects.
	mark = out.mark()
	kind := read(t, root, "api/v1alpha1/widget.go")
	write(t, root, "api/v1alpha1/widget.go", strings.Replace(kind, "	Message string", "	// +kubebuilder:validation:MaxLength=5\n	Message string", 1))
	write(t, root, "notes.go", "package main\n")
	out.await(t, "The operator that runs goes on|after the file was saved")
	text := out.since(mark)
	for _, want := range []string{
		"✘ definitions", "the new definition of Widget does not fit 1 of its 2 objects:", "Widget/first\n",
		"spec.message: Too long: may not be more than 5 bytes", "kubectl delete widgets.example.com first -n default --kubeconfig=/a/b",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if !alive(next) || out.pid(t) != next {
		t.Error("the operator has been replaced")
	}

	// Ctrl-C.
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("the session ended with %v", err)
	}
	if alive(next) {
		t.Error("the operator is still alive")
	}
	if at := debug.URL(); at != "" {
		t.Errorf("no operator runs, and is to be asked at %s", at)
	}
	testenv.Gone(t, c, object("first"), "the operator deletes its objects")
	testenv.Gone(t, c, object("slow"), "the operator deletes its objects")
}

// asked is what the operator that runs says about itself.
func asked(t *testing.T, debug *Address) running.Operator {
	t.Helper()
	d, err := inspect.Operator{At: debug.URL}.Describe(t.Context())
	if err != nil || d.Name != "widgets" || !d.Leads {
		t.Errorf("the operator says %+v, %v", d, err)
	}
	return d
}

// checkNotes: each pass that the old process has begun it has ended, before the new one began any.
func checkNotes(t *testing.T, file string, old, next int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	open, changed := 0, false
	for line := range strings.Lines(string(text)) {
		id, what, _ := strings.Cut(line, " ")
		of, err := strconv.Atoi(id)
		if err != nil {
			t.Fatal(err)
		}
		changed = changed || of == next
		switch begins := strings.HasPrefix(what, "begin"); {
		case of == old && changed:
			t.Errorf("the old process goes on after the new one has begun:\n%s", text)
		case of == old && begins:
			open++
		case of == old:
			open--
		}
	}
	if open != 0 || !changed {
		t.Errorf("%d passes of process %d have not ended, or process %d has begun none:\n%s", open, old, next, text)
	}
}

// project makes a module as `trimtab new` does, with the logic of this test.
func project(t *testing.T) string {
	t.Helper()
	_, checkout := controlplane.Source()
	dir := t.TempDir()
	t.Chdir(dir)
	p := scaffold.Project{Name: "widgets", Kind: "Widget", Form: scaffold.Loop, Version: "v0.0.0", Replace: checkout}.Complete()
	if err := p.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "widgets")
	gobuild.Builds(t, root, "./...")
	main := regexp.MustCompile(`(?m)^func measure.*\n`).ReplaceAllString(read(t, root, "main.go"), "")
	write(t, root, "main.go", main)
	write(t, root, "measure.go", strings.Replace(measure, "LETTERS", "1", 1))
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// awaitFile waits until a file has a text.
func awaitFile(t *testing.T, name, text string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if have, err := os.ReadFile(name); err == nil && strings.Contains(string(have), text) {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("%s never had %q", name, text)
		}
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// lines is what a session has shown.
type lines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	from    int // what await has not seen yet
	changed chan struct{}
	ended   bool
}

func newLines() *lines { return &lines{changed: make(chan struct{})} }

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.text.Write(text)
}

func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *lines) String() string { return l.since(0) }

func (l *lines) mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from = l.text.Len()
	return l.from
}

func (l *lines) since(mark int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text.Bytes()[mark:])
}

// await waits until a pattern is shown, after the last mark.
func (l *lines) await(t *testing.T, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for {
		l.mu.Lock()
		found, changed, ended := re.Match(l.text.Bytes()[l.from:]), l.changed, l.ended
		l.mu.Unlock()
		if found {
			return
		}
		if ended {
			t.Fatalf("the session has ended without %q", pattern)
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("the session never showed %q", pattern)
		}
	}
}

// pid is that of the operator that was started last.
func (l *lines) pid(t *testing.T) int {
	t.Helper()
	found := regexp.MustCompile(`✔ operator +pid (\d+)`).FindAllStringSubmatch(l.String(), -1)
	if len(found) == 0 {
		t.Fatal("no operator was started")
	}
	pid, err := strconv.Atoi(found[len(found)-1][1])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
