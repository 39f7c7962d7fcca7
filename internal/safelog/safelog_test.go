package safelog_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/trimtab-dev/trimtab/internal/safelog"
)

// TestLogger: nothing that is logged shows a credential, wherever it stands.
func TestLogger(t *testing.T) {
	var lines []string
	raw := funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) }, funcr.Options{LogCaller: funcr.All})
	log := safelog.Logger(safelog.Logger(raw))
	dsn := "postgres://app:hunter2@db/x"
	log.Info("connect to "+dsn, "url", dsn, "n", 3)
	log.Error(errors.New("parse "+dsn), "no", "cause", errors.New(dsn))
	log.WithValues("url", dsn).WithName("a").Info("now")
	log.V(1).Info("more: " + dsn)
	for _, line := range lines {
		if strings.Contains(line, "hunter2") || !strings.Contains(line, "log_test.go") {
			t.Errorf("logged %s", line)
		}
	}
	if len(lines) != 3 || !strings.Contains(lines[0], `"n"=3`) {
		t.Errorf("lines %q", lines)
	}
	safelog.Logger(logr.Logger{}).Info("a logger without a sink")
}

// TestLazy: a lazy logger is made once, when something is logged, and logs what the one that it
// stands for would, with the caller's place.
func TestLazy(t *testing.T) {
	var lines []string
	raw := funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) }, funcr.Options{LogCaller: funcr.All})
	made := 0
	with := func(l logr.Logger) logr.Logger { made++; return l.WithName("pass").WithValues("object", "a") }
	log := safelog.Lazy(raw, with)
	log.V(1).Info("more")
	if made != 0 || log.V(1).Enabled() || !log.Enabled() {
		t.Errorf("made %d times before anything was logged", made)
	}
	log.Info("one")
	log.Error(errors.New("broken"), "two")
	log.WithName("deep").Info("three")
	log.WithValues("n", 1).Info("four")
	log.WithCallDepth(0).Info("five of postgres://app:hunter2@db/x")
	for _, line := range lines {
		if !strings.Contains(line, "pass") || !strings.Contains(line, `"object"="a"`) || !strings.Contains(line, "safelog_test.go") || strings.Contains(line, "hunter2") {
			t.Errorf("logged %s", line)
		}
	}
	if len(lines) != 5 || made != 1 {
		t.Errorf("made %d times, lines %q", made, lines)
	}
	safelog.Lazy(logr.Logger{}, with).Info("a logger without a sink")
}

func TestError(t *testing.T) {
	err := safelog.Error(&fs.PathError{Op: "open", Path: "https://a:hunter2@h/x", Err: fs.ErrNotExist})
	if !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "hunter2") || safelog.Error(nil) != nil {
		t.Errorf("%v", err)
	}
}
