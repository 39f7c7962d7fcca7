package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

const crdOf = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %s
`

// TestFiles proves that CRDs are found wherever they are: in several file systems, in text, and in a
// module that the test requires.
func TestFiles(t *testing.T) {
	a, b := strings.ReplaceAll(crdOf, "%s", "as.example.com"), strings.ReplaceAll(crdOf, "%s", "bs.example.com")
	in := Files(
		fstest.MapFS{"bases/a.yaml": {Data: []byte(a)}}, nil,
		Manifests("# from a chart\n---\nkind: Deployment\n---\n---\n# nothing\n---\n"+b),
	)
	crds, err := apiserver.ReadCRDs(in)
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) != 2 || crds[0].Name != "as.example.com" || crds[1].Name != "bs.example.com" {
		t.Errorf("found %v, want those of both file systems", crds)
	}
	if _, err := fs.ReadFile(in, "1/x.yaml"); err == nil {
		t.Error("a file system that is nil has a file")
	}

	module := Module(t, "sigs.k8s.io/controller-runtime", "pkg/envtest/testdata/crdv1_original")
	crds, err = apiserver.ReadCRDs(module)
	if err != nil || len(crds) == 0 {
		t.Errorf("found %d CRDs in the tests of controller-runtime: %v", len(crds), err)
	}
	one := Module(t, "sigs.k8s.io/controller-runtime", "pkg/envtest/testdata/crdv1_original/example_multiversion_crd1.yaml")
	some, err := apiserver.ReadCRDs(one)
	if err != nil || len(some) == 0 {
		t.Errorf("found %d CRDs in one file of controller-runtime: %v", len(some), err)
	}
}

// TestPaths proves that a folder and a file beside others can be given by their paths, that no other file counts, and that a path
// that is wrong is one sentence.
func TestPaths(t *testing.T) {
	here, folder := relativeFolder(t)
	for name, text := range map[string]string{
		"crds/a.yaml":  strings.ReplaceAll(crdOf, "%s", "as.example.com"),
		"other/b.yaml": strings.ReplaceAll(crdOf, "%s", "bs.example.com"),
		"other/c.yaml": strings.ReplaceAll(crdOf, "%s", "cs.example.com"),
	} {
		name = filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	crds, err := apiserver.ReadCRDs(Paths(filepath.Join(folder, "crds"), filepath.Join(folder, "other/b.yaml")))
	if err != nil || len(crds) != 2 || crds[0].Name != "as.example.com" || crds[1].Name != "bs.example.com" {
		t.Errorf("found %v: %v; want that of the folder and that of the file", crds, err)
	}
	_, err = apiserver.ReadCRDs(Paths(filepath.Join(folder, "crds"), "other/d.yaml"))
	want := "kubesim: read CRDs: fault.Paths: stat other/d.yaml: no such file or directory; give paths relative to the folder of the test, which is " + here
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// relativeFolder is the folder of the test, and an empty folder by its path from there. A test that changed to another folder would
// depend on this one's times, and go test would run all tests here again in each clone.
func relativeFolder(t *testing.T) (here, folder string) {
	t.Helper()
	here, err := os.Getwd()
	if err == nil {
		folder, err = filepath.Rel(here, t.TempDir())
	}
	if err != nil {
		t.Fatal(err)
	}
	return here, folder
}

// TestLists proves that the objects of a List count like those in documents of their own.
func TestLists(t *testing.T) {
	crd := "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.example.com}, spec: {group: example.com}}"
	role := "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: []}"
	list := Manifests("apiVersion: v1\nkind: List\nitems:\n- " + crd + "\n- apiVersion: v1\n  kind: List\n  items: [" + role + "]\n")
	crds, err := apiserver.ReadCRDs(list)
	if err != nil || len(crds) != 1 || crds[0].Spec.Group != "example.com" {
		t.Errorf("found %v, want the one CRD: %v", crds, err)
	}
	if _, err := apiserver.ReadRoles(list); err != nil {
		t.Errorf("the role in the list within the list is not found: %v", err)
	}
}

// TestManifestsOfSamples proves that a step takes a manifest as it lies in a folder of samples, and says so if it holds more
// than the one object that the step can create.
func TestManifestsOfSamples(t *testing.T) {
	const a = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
	tests := map[string]struct{ manifest, want string }{
		"comments": {"# a licence\n---\n" + a + "---\n# the end\n", ""},
		"two":      {a + "---\n" + strings.ReplaceAll(a, "name: a", "name: b"), "the manifest holds 2 objects, Secret a and Secret b; create each of them in a step of its own, with fault.CreateYAML or from a file of its own"},
		"nothing":  {"# a licence\n", "the manifest is not one named object: it is empty"},
		"no name":  {"kind: Secret\n", "the manifest is not one named object: it needs a kind and metadata.name"},
		"no YAML":  {"kind: [\n", "the manifest is not one named object: error converting YAML"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var said string
			func() {
				defer func() {
					if r := recover(); r != nil {
						said = fmt.Sprint(r)
					}
				}()
				if got := CreateYAML(test.manifest); got.Name != "create a" {
					t.Errorf("the step is %q", got.Name)
				}
			}()
			if (test.want == "") != (said == "") || !strings.Contains(said, test.want) {
				t.Errorf("said %q, want %q", said, test.want)
			}
			said = createdFromFile(t, test.manifest)
			if (test.want == "") != (said == "") || !strings.Contains(said, strings.TrimPrefix(test.want, "the manifest ")) {
				t.Errorf("of a file, said %q, want %q", said, test.want)
			}
		})
	}
}

// createdFromFile writes a manifest to a file and says what is wrong with a scenario that creates its object, but for the name of
// the file; empty if nothing is.
func createdFromFile(t *testing.T, manifest string) string {
	t.Helper()
	_, folder := relativeFolder(t)
	path := filepath.Join(folder, "sample.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	step := CreateFile(path)
	for name, s := range map[string]Scenario{"Before": {Before: []Step{step}}, "Steps": {Steps: []Step{step}}, "Races": {Races: []Step{step}}} {
		s.Name, s.Operator.SetUp = "samples", toyOperator("")
		_, err := newExploration(t, &s, options{})
		if err == nil {
			if step.Name != "create a" || !isSameObject(step.object, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}) {
				t.Errorf("the step is %q", step.Name)
			}
			return ""
		}
		if name == "Races" {
			text, found := strings.CutPrefix(err.Error(), `fault: scenario "samples": fault.CreateFile: `+path+" ")
			if !found {
				t.Errorf("the file is not named: %v", err)
			}
			return text
		}
	}
	return ""
}

// TestMissingFile proves that a file that cannot be read is one sentence with its path and with where it was looked for.
func TestMissingFile(t *testing.T) {
	here, _ := relativeFolder(t)
	s := Scenario{Name: "samples", Operator: Operator{SetUp: toyOperator("")}, Steps: []Step{CreateFile("../config/a.yaml").Becomes(configMap("a"), "Ready")}}
	_, err := newExploration(t, &s, options{})
	if _, ok := errors.AsType[sandbox.MisuseError](err); !ok {
		t.Fatalf("%v is no misuse", err)
	}
	want := `fault: scenario "samples": fault.CreateFile: open ../config/a.yaml: no such file or directory; ` +
		"give the path of a manifest, relative to the folder of the test, which is " + here
	if err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestKustomizePatches proves that the folders of a kubebuilder project can be given as they are: the patches in them,
// which only kustomize applies, are left out.
func TestKustomizePatches(t *testing.T) {
	crd := strings.ReplaceAll(crdOf, "%s", "as.example.com")
	crds := fstest.MapFS{
		"bases/a.yaml":                 {Data: []byte(crd + "spec: {group: example.com}\n")},
		"patches/cainjection_in_a.yml": {Data: []byte(crd + "  annotations: {cert-manager.io/inject-ca-from: $(NAME)}\n")},
		"patches/webhook_in_a.yaml":    {Data: []byte(crd + "spec: {conversion: {strategy: Webhook}}\n")},
	}
	read, err := apiserver.ReadCRDs(crds)
	if err != nil {
		t.Fatal(err)
	}
	if len(read) != 1 || read[0].Spec.Group != "example.com" || read[0].Spec.Conversion != nil {
		t.Errorf("read %v, want the one CRD as it is without its patches", read)
	}
	webhooks := fstest.MapFS{
		"manifests.yaml": {Data: []byte("apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: m}\n")},
		"patch.yaml":     {Data: []byte("- op: replace\n  path: /webhooks/1\n  value: {name: a}\n")},
		"other.yaml":     {Data: []byte("---\n# nothing\n")},
	}
	configurations, err := apiserver.ReadWebhooks(webhooks)
	if err != nil || len(configurations) != 1 {
		t.Errorf("read %d webhook configurations, want 1: %v", len(configurations), err)
	}
	want := []string{"patches/cainjection_in_a.yml", "patches/webhook_in_a.yaml", "patch.yaml"}
	if got := apiserver.Patches(crds, nil, webhooks); !slices.Equal(got, want) {
		t.Errorf("the patches are %q, want %q", got, want)
	}
}

// TestFilesMistakes proves that each mistake is one sentence with the way out.
func TestFilesMistakes(t *testing.T) {
	tests := map[string]struct {
		why  string
		does func(t *fatal)
		want string
	}{
		"no such module": {
			"a typing error", func(t *fatal) { Module(t, "example.com/nothing") },
			"fault.Module: this module does not require example.com/nothing: ",
		},
		"no such folder": {
			"folders move between versions", func(t *fatal) { Module(t, "sigs.k8s.io/controller-runtime", "config/crd") },
			`fault.Module: module sigs.k8s.io/controller-runtime has no folder or file "config/crd"; it would be ` + string(os.PathSeparator),
		},
		"a workspace of others": {
			"the test was built with GOWORK=off, and is run without it", func(t *fatal) {
				of := t.TempDir()
				work := filepath.Join(of, "go.work")
				for name, text := range map[string]string{"go.work": "go 1.26\nuse ./other\n", "other/go.mod": "module example.com/other\ngo 1.26\n"} {
					if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(of, name)), 0o755), os.WriteFile(filepath.Join(of, name), []byte(text), 0o600)); err != nil {
						t.Error(err)
					}
				}
				t.Setenv("GOWORK", work)
				Module(t, "sigs.k8s.io/controller-runtime")
			},
			"go.work does not use the module of this test; run the test with GOWORK=off, or add the module with go work use",
		},
		"no kind": {
			"one line was forgotten when it was copied", func(t *fatal) {
				_, err := apiserver.ReadCRDs(Files(Manifests("# a chart\n---\nkind: Deployment\n---\nmetadata:\n  name: a\n---\n")))
				t.Fatalf("%v", err)
			},
			`fault.Manifests: document 3 has no kind: {"metadata":{"name":"a"}}; give whole objects, each after a line with ---`,
		},
		"a text": {
			"the name of a file", func(t *fatal) {
				_, err := apiserver.ReadRoles(Manifests("config/rbac/role.yaml"))
				t.Fatalf("%v", err)
			},
			`fault.Manifests: document 1 has no kind: "config/rbac/role.yaml"; give whole objects, each after a line with ---`,
		},
		"a template": {
			"a Helm chart as it is", func(t *fatal) {
				_, err := apiserver.ReadRoles(fstest.MapFS{"templates/role.yaml": {Data: []byte("{{- if .Values.rbac }}\nkind: ClusterRole\n{{- end }}\n")}})
				t.Fatalf("%v", err)
			},
			"templates/role.yaml: a template; give what it renders to, such as the output of helm template",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			said := &fatal{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				test.does(said)
			}()
			<-done
			if !strings.Contains(said.text, test.want) || strings.Contains(said.text, "\n") {
				t.Errorf("%s: got %q, want one line with %q", test.why, said.text, test.want)
			}
		})
	}
}

// fatal keeps what a test ends with.
type fatal struct {
	testing.TB

	text string
}

func (f *fatal) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
