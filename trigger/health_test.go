package trigger

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
)

// TestHealthLog: the log says when a source starts to fail, once, also if it has never worked.
func TestHealthLog(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		why   string
		first error
	}{
		"works at first": {"a poll", nil},
		"not synced yet": {"a watch without permission never works", errNotSynced},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
			h := newHealth(Target[*corev1.ConfigMap]{Name: name, Controller: t.Name(), Log: log}, "", 0, test.first)
			defer h.end()
			for range 2 { // starts to fail, works again, and starts to fail
				for range 3 {
					h.fails(errors.New("no route"))
				}
				if h.check(nil) == nil {
					t.Error("it works although it fails")
				}
				h.works()
			}
			if got := strings.Count(strings.Join(lines, "\n"), "the source failed"); got != 2 {
				t.Errorf("%s: %d lines say that it failed, want 2: %q", test.why, got, lines)
			}
		})
	}
}
