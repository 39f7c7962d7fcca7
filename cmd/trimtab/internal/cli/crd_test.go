package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/testenv"
)

// shops is a CRD whose spec has the given field.
func shops(field string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.crd-diff.example.org}
spec:
  group: crd-diff.example.org
  scope: Namespaced
  names: {kind: Shop, listKind: ShopList, plural: shops, singular: shop}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {` + field + `}}}}
`
}

// TestCRDDiff compares files, folders and a cluster.
func TestCRDDiff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	two := strings.Replace(shops("size: {type: string}"), "shops.crd", "stores.crd", 1)
	plain, limited := file("plain.yaml", shops("size: {type: string}")), file("limited.yaml", shops("size: {type: string, maxLength: 9}"))
	both := filepath.Dir(file("both/shops.yaml", shops("size: {type: string}")+"---\n"+two))
	twice := filepath.Dir(file("twice/a.yaml", shops("size: {type: string}")))
	file("twice/b.yaml", shops("size: {type: string}"))
	empty := filepath.Dir(file("empty/note.txt", "none"))
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, os.DirFS(filepath.Dir(file("installed/shops.yaml", shops("size: {type: string}")))))
	cluster := "--kubeconfig=" + testenv.Kubeconfig(t, cfg)
	const narrower = "CRD shops.crd-diff.example.org, version v1: spec.size has maxLength 9 now\n"
	tests := map[string]struct {
		why  string
		args []string
		code int
		out  string // on standard output
		err  string // in what is on standard error
	}{
		"the same":         {why: "nothing changed", args: []string{plain, plain}, out: "nothing breaks\n"},
		"wider":            {why: "more is allowed", args: []string{limited, plain}, out: "nothing breaks\n"},
		"narrower":         {why: "stored objects may be refused", args: []string{plain, limited}, code: 2, out: narrower},
		"removed":          {why: "its objects go with it", args: []string{both, plain}, code: 2, out: "CRD stores.crd-diff.example.org: it is removed, and all its objects with it\n"},
		"added":            {why: "nobody used it", args: []string{plain, both}, out: "nothing breaks\n"},
		"cluster":          {why: "what is installed is what an upgrade replaces; it has CRDs of others", args: []string{"cluster", limited, cluster}, code: 2, out: narrower},
		"cluster, current": {why: "defaults of the API server are no changes", args: []string{"cluster", plain, cluster}, out: "nothing breaks\n"},
		"no such file":     {why: "a typo", args: []string{plain, filepath.Join(dir, "none")}, code: 1, err: "; for the CRDs of a cluster, write cluster\n"},
		"no CRD":           {why: "the wrong folder", args: []string{plain, empty}, code: 1, err: "; name a file or folder with CustomResourceDefinitions\n"},
		"twice":            {why: "which one is meant?", args: []string{twice, plain}, code: 1, err: "there is another CRD shops.crd-diff.example.org in " + twice},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errOut := runCLI(t.Context(), append([]string{"crd", "diff"}, tt.args...)...)
			if code != tt.code || out != tt.out || !strings.Contains(errOut, tt.err) || tt.err == "" && errOut != "" {
				t.Errorf("%s: exit code %d, output %q, error %q; want %d, %q, and %q", tt.why, code, out, errOut, tt.code, tt.out, tt.err)
			}
		})
	}
}

// TestPackageRefuses: what cannot be packaged is refused before anything is built.
func TestPackageRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why  string
		args []string
		want string
	}{
		"no image":    {why: "a chart has to name it", args: nil, want: "name the image that will be pushed, with its tag, as in --image ghcr.io/your-name/widgets:v0.1.0"},
		"a digest":    {why: "nobody knows it yet", args: []string{"--image", "widgets@sha256:1234"}, want: "name the image that will be pushed, with its tag"},
		"no platform": {why: "a typo", args: []string{"--image", "widgets:v1", "--platform", "amd64"}, want: `"amd64" is no platform; name an operating system and an architecture, such as linux/amd64`},
		"two folders": {why: "one is a mistake", args: []string{"a", "b", "--image", "widgets:v1"}, want: "2 folders are named; name the one of the operator"},
		"no roots":    {why: "the operator would trust nobody", args: []string{"--image", "widgets:v1", "--ca-bundle", os.DevNull}, want: "contains no certificate"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			code, _, errOut := runCLI(t.Context(), append([]string{"package", "--out", out}, tt.args...)...)
			if code != 1 || !strings.Contains(errOut, tt.want) {
				t.Errorf("%s: exit code %d, error %q; want 1 and %q", tt.why, code, errOut, tt.want)
			}
		})
	}
}
