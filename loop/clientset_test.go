package loop

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/kubernetes"
)

// TestClientset: a clientset is made once, again after a failure, and not without a reason or a manager.
func TestClientset(t *testing.T) {
	t.Parallel()
	var none clientset
	if _, err := none.get(logr.Discard(), "reads logs"); err == nil {
		t.Error("a pass without a manager has a clientset")
	}
	made := 0
	c := clientset{make: func() (kubernetes.Interface, error) {
		if made++; made == 1 {
			return nil, errors.New("no certificate")
		}
		return &kubernetes.Clientset{}, nil
	}}
	if _, err := c.get(logr.Discard(), ""); err == nil || made > 0 {
		t.Errorf("without a reason: %v", err)
	}
	for i, fails := range []bool{true, false, false} {
		if set, err := c.get(logr.Discard(), "reads logs"); (err != nil) != fails || (set == nil) != fails {
			t.Errorf("call %d: %v, %v", i+1, set, err)
		}
	}
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	for i := range 40 {
		if _, err := c.get(log, fmt.Sprint("reason ", i/2)); err != nil {
			t.Fatal(err)
		}
	}
	if last := len(lines) - 1; last != mostReasons-1 || !strings.Contains(lines[last], "further reasons are not logged") {
		t.Errorf("%d lines, want one for each reason and one that says that there are more:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if made != 2 {
		t.Errorf("made %d times, want twice", made)
	}
}
