package replay_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/inspect"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/replay"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/scaffold"
	"github.com/trimtab-dev/trimtab/trace"
)

// life is a test in the module of an operator: it has passes run over an object, in a cluster of its own, and writes what each one
// recorded and the object after it. The words between signs % differ from operator to operator.
const life = `package main

import (
	"encoding/json"
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/loop/looptest"
	"github.com/trimtab-dev/trimtab/trace"
%IMPORT%
	"example.com/widgets/api/v1alpha1"
)

func TestLife(t *testing.T) {
	o := object("%FIRST%")
	o.UID, o.Generation = "3f0c7f0e", 1
	env := looptest.NewEnv(t, %CONTROLLER%, looptest.Cluster{AddToScheme: v1alpha1.AddToScheme, Objects: []client.Object{o}})
	out, err := os.Create("life.json")
	if err != nil {
		t.Fatal(err)
	}
	pass := func() *v1alpha1.Widget {
		r := env.Pass(o)
		err := json.NewEncoder(out).Encode(struct {
			Trace  []trace.Record
			Object client.Object
		}{r.Trace, r.Object})
		if err != nil {
			t.Fatal(err)
		}
		return r.Object.(*v1alpha1.Widget)
	}
	pass()
	now := pass()
	now.Spec.%FIELD% = "%SECOND%"
	if err := env.Client().Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	pass()
	pass()
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
`

// TestRuns: tests that are saved from the passes over an object of an operator that trimtab new has made pass as they are, and fail
// after the operator has changed.
func TestRuns(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[scaffold.Form]struct {
		why  string
		life *strings.Replacer
		// was becomes is in main.go.
		was, is string
		fails   int
	}{
		scaffold.External: {
			"the resource is created, found as it is, and changed",
			strings.NewReplacer("%IMPORT%", "\t\"github.com/trimtab-dev/trimtab/external\"\n", "%CONTROLLER%", "external.New(driver{}, options(newVendor()))", "%FIRST%", "small", "%FIELD%", "Size", "%SECOND%", "large"),
			`external.Field("spec.size", r.Object.Spec.Size, r.Have.Size)`, `external.Field("spec.size", r.Object.Spec.Size, r.Have.Size+"!")`, 4,
		},
		scaffold.Loop: {
			"the object is reconciled, found as it is, and refused",
			strings.NewReplacer("%IMPORT%", "", "%CONTROLLER%", "controller()", "%FIRST%", "Hello.", "%FIELD%", "Message", "%SECOND%", ""),
			"spec.message is empty; write a message", "write a message", 2,
		},
	}
	for form, tt := range tests {
		t.Run(string(form), func(t *testing.T) {
			t.Chdir(t.TempDir())
			p := scaffold.Project{Name: "widgets", Kind: "Widget", Form: form, Version: "v0.0.0", Replace: root}.Complete()
			if err := p.Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Chdir("widgets")
			write(t, "life_test.go", tt.life.Replace(life))
			if out, ok := goTest(t, "TestLife"); !ok {
				t.Fatal(out)
			}
			saved := save(t, p.Module)
			if saved != 4 {
				t.Fatalf("%d tests were saved, want 4", saved)
			}
			if out, ok := goTest(t, "Pass"); !ok || strings.Count(out, "--- PASS: TestWidgetFirstPass") != saved {
				t.Errorf("the saved tests do not pass: %s\n%s", tt.why, out)
			}
			text, err := os.ReadFile("main.go")
			if err != nil || !bytes.Contains(text, []byte(tt.was)) {
				t.Fatalf("main.go has no %s: %v", tt.was, err)
			}
			write(t, "main.go", strings.Replace(string(text), tt.was, tt.is, 1))
			if out, _ := goTest(t, "Pass"); strings.Count(out, "--- FAIL: TestWidgetFirstPass") != tt.fails {
				t.Errorf("after the operator has changed, want %d saved tests to fail:\n%s", tt.fails, out)
			}
		})
	}
}

// save writes a test from each pass of the life, and returns how many.
func save(t *testing.T, module string) (saved int) {
	t.Helper()
	text, err := os.ReadFile("life.json")
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("uid-1"), []byte("9a1b2c3d")) // the cluster was another one
	for lines := json.NewDecoder(bytes.NewReader(text)); lines.More(); saved++ {
		var was struct {
			Trace  []trace.Record
			Object *unstructured.Unstructured
		}
		if err := lines.Decode(&was); err != nil {
			t.Fatal(err)
		}
		file, err := replay.Write(replay.Input{Pass: inspect.Passes(was.Trace)[0], Object: was.Object, Module: module})
		if err != nil {
			t.Fatal(err)
		}
		write(t, file.Name, file.Text)
	}
	return saved
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// goTest runs tests of the module in the working directory.
func goTest(t *testing.T, run string) (out string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-v", "-run", run, ".")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}
