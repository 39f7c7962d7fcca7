package testenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// limited has a time limit of its own, as -timeout sets it.
type limited struct {
	testing.TB
	end time.Time
}

func (l limited) Deadline() (time.Time, bool) { return l.end, true }

// TestLateStart: a control plane that does not start ends the test in time to say why.
func TestLateStart(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "devcluster")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\nexec cat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TRIMTAB_DEVCLUSTER", binary)
	_, err := startOwn(t.Context(), limited{t, time.Now().Add(grace + 100*time.Millisecond)})
	if err == nil || !strings.Contains(err.Error(), "allow for more with -timeout") {
		t.Errorf("the error is %v, want one that says that the time is up", err)
	}
}
