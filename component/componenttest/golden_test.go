package componenttest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/internal/bundle"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB

	failures []string
}

func (r *recorder) Errorf(format string, _ ...any) { r.failures = append(r.failures, format) }
func (*recorder) Helper()                          {}
func (*recorder) Context() context.Context         { return context.Background() } //nolint:forbidigo // of a test that is none

// TestGolden: a file that is missing is written and fails the test, the same objects pass, and other objects
// fail it.
func TestGolden(t *testing.T) {
	c := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	file := filepath.Join(t.TempDir(), "testdata", "web.yaml")
	failures := func(name string) int {
		t.Helper()
		r, other := &recorder{TB: t}, c.DeepCopy()
		other.Name = name
		componenttest.Golden(r, component.RenderFunc[*bundle.Bundle](render), other, file)
		return len(r.failures)
	}
	if failures("web") != 1 {
		t.Error("a file that was missing did not fail the test")
	}
	if failures("web") != 0 {
		t.Error("the same objects failed the test")
	}
	if failures("other") != 1 {
		t.Error("other objects did not fail the test")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: web-texts", "kind: ConfigMap", `OPERATOR/apply-order: "2"`, "welcome: hello"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the file lacks %q:\n%s", want, data)
		}
	}
	t.Setenv(componenttest.UpdateGolden, "1")
	if failures("other") != 0 {
		t.Error("an update failed the test")
	}
	if failures("other") != 0 {
		t.Error("an update did not write the file")
	}
}
