// Package tracetest helps tests that check what happened in passes.
//
// A [Recorder] collects records, and [Compare] compares their transcript with a file in testdata.
// Package trace defines the form of a transcript.
package tracetest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/trace"
)

// Recorder is a sink that keeps all records. The zero value is ready to use.
type Recorder struct {
	mu      sync.Mutex
	records []trace.Record
}

// Record keeps r.
func (c *Recorder) Record(r trace.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records = append(c.records, r)
}

// Records returns the records since the last call.
func (c *Recorder) Records() []trace.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.records
	c.records = nil
	return got
}

// Events returns the events of type E in records, in order.
func Events[E trace.Event](records []trace.Record) []E {
	var found []E
	for _, r := range records {
		if e, ok := r.Event.(E); ok {
			found = append(found, e)
		}
	}
	return slices.Clip(found)
}

// Compare fails the test if got differs from the content of file. If update is true, it writes
// the file instead; test packages define a flag of that name. Commit a changed transcript only if
// you can explain each line.
func Compare(t testing.TB, file, got string, update bool) {
	t.Helper()
	if update {
		accept(t, file, got)
		return
	}
	want, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nto accept: go test -run '^%s$' -update", file, diff, t.Name())
	}
}

func accept(t testing.TB, file, got string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}
