package component_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/internal/gobuild"
)

// typed is a program with a renderer. Lines that end in "wrong" must not compile, all others must.
const typed = `package typed

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/product"
)

func bundles(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (s component.Set, err error) {
	var objects int = len(r.Component.Spec.Objects)
	_ = objects
	_ = r.Component.Spec.Title // wrong
	var status string = r.Component.Spec.Objects // wrong
	_ = status
	d := s.Add(&corev1.ConfigMap{}).Wave(1)
	s.Add(&corev1.Secret{}).After(d)
	s.Add(corev1.Secret{}) // wrong
	d.Wave("1") // wrong
	d.After(&corev1.ConfigMap{}) // wrong
	return s, nil
}

var (
	_ = component.New[*bundle.Bundle](component.RenderFunc[*bundle.Bundle](bundles), component.Options[*bundle.Bundle]{})
	_ = component.RenderFunc[*product.Product](bundles) // wrong
	_ = component.New[*bundle.Bundle](component.RenderFunc[*bundle.Bundle](bundles), component.Options[*product.Product]{}) // wrong
	_ = component.Options[*corev1.ConfigMap]{} // wrong
)
`

func TestTyped(t *testing.T) {
	t.Parallel()
	t.Run("B-32 a wrong type does not compile", func(t *testing.T) {
		t.Parallel()
		folder, err := filepath.Abs("typed")
		if err != nil {
			t.Fatal(err)
		}
		source, overlay := filepath.Join(t.TempDir(), "typed.go"), filepath.Join(t.TempDir(), "overlay.json")
		replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(folder, "typed.go"): source}})
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{source: []byte(typed), overlay: replace} {
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := gobuild.Output(t, "./typed", "-gcflags=-e", "-overlay="+overlay)
		if err == nil {
			t.Fatal("it compiles")
		}
		want, got := map[string]bool{}, map[string]bool{}
		lines := strings.Split(typed, "\n")
		for _, line := range lines {
			if strings.HasSuffix(line, "// wrong") {
				want[strings.TrimSpace(line)] = true
			}
		}
		for _, at := range regexp.MustCompile(`typed\.go:(\d+):`).FindAllStringSubmatch(string(out), -1) {
			var n int
			if err := json.Unmarshal([]byte(at[1]), &n); err != nil {
				t.Fatal(err)
			}
			got[strings.TrimSpace(lines[n-1])] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("lines that do not compile (-want +got):\n%s\n%s", diff, out)
		}
	})
}
