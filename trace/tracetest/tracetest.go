// Package tracetest helps tests that compare what happened with what should have.
//
// A [Recorder] collects records; [Compare] holds their transcript against a file in
// testdata. How a transcript looks is in package trace.
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

// Recorder is a sink that keeps everything. The zero value is ready to use.
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

// Records returns what was recorded since the last call.
func (c *Recorder) Records() []trace.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.records
	c.records = nil
	return got
}

// Events returns the events of type E among records, in order.
func Events[E trace.Event](records []trace.Record) []E {
	var found []E
	for _, r := range records {
		if e, ok := r.Event.(E); ok {
			found = append(found, e)
		}
	}
	return slices.Clip(found)
}

// Compare fails the test if got differs from what file holds. With update, which a test
// package takes from a flag of that name, it writes the file instead: commit a changed
// transcript only if you can explain it line by line.
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
