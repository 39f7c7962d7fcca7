package componenttest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/internal/bundle"
)

// render returns a ConfigMap and, in the second wave, another.
func render(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
	var s component.Set
	s.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: r.Name + "-texts"}, Data: map[string]string{"welcome": "hello"}})
	s.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: r.Name + "-page"}}).Wave(2)
	return s, nil
}

// A test compares what is rendered with a file, which it writes if it is asked to.
func ExampleGolden() {
	dir, err := os.MkdirTemp("", "golden")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "web.yaml")
	TestWeb := func(t testing.TB) { //nolint:thelper // a test, not a helper
		web := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		componenttest.Golden(t, component.RenderFunc[*bundle.Bundle](render), web, file)
	}
	TestWeb(&recorder{})

	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(text))
	// Output:
	// ---
	// apiVersion: v1
	// data:
	//   welcome: hello
	// kind: ConfigMap
	// metadata:
	//   name: web-texts
	// ---
	// apiVersion: v1
	// kind: ConfigMap
	// metadata:
	//   annotations:
	//     OPERATOR/apply-order: "2"
	//   name: web-page
}
