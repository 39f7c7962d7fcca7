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
	"github.com/trimtab-dev/trimtab/internal/gobuild"
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
		// was becomes is in main.go, so that the operator differs if the variable changed does.
		was, is string
		fails   int
	}{
		scaffold.External: {
			"the resource is created, found as it is, and changed",
			strings.NewReplacer("%IMPORT%", "\t\"github.com/trimtab-dev/trimtab/external\"\n", "%CONTROLLER%", "external.New(driver{}, options(newVendor()))", "%FIRST%", "small", "%FIELD%", "Size", "%SECOND%", "large"),
			`external.Field("spec.size", r.Object.Spec.Size, r.Have.Size)`, `external.Field("spec.size", r.Object.Spec.Size, r.Have.Size+changed)`, 4,
		},
		scaffold.Loop: {
			"the object is reconciled, found as it is, and refused",
			strings.NewReplacer("%IMPORT%", "", "%CONTROLLER%", "controller()", "%FIRST%", "Hello.", "%FIELD%", "Message", "%SECOND%", ""),
			`"spec.message is empty; write a message"`, `"spec.message is empty; write a message" + changed`, 2,
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
			gobuild.Builds(t, "", "./...")
			text, err := os.ReadFile("main.go")
			if err != nil || !bytes.Contains(text, []byte(tt.was)) {
				t.Fatalf("main.go has no %s: %v", tt.was, err)
			}
			write(t, "main.go", strings.Replace(string(text), tt.was, tt.is, 1))
			write(t, "changed.go", "package main\n\nimport \"os\"\n\nvar changed = os.Getenv(\"CHANGED\")\n")
			write(t, "life_test.go", tt.life.Replace(life))
			run(t, "go", "test", "-vet=off", "-run", "TestLife", ".")
			saved := save(t, p.Module)
			if saved != 4 {
				t.Fatalf("%d tests were saved, want 4", saved)
			}
			run(t, "go", "test", "-vet=off", "-c", "-o", "saved.test", ".") // once: what takes long is to link it
			if out, ok := savedTests(t, ""); !ok || strings.Count(out, "--- PASS: TestWidgetFirstPass") != saved {
				t.Errorf("the saved tests do not pass: %s\n%s", tt.why, out)
			}
			if out, _ := savedTests(t, "!"); strings.Count(out, "--- FAIL: TestWidgetFirstPass") != tt.fails {
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

// run runs a command in the module in the working directory, to its end without an error.
func run(t *testing.T, command ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// savedTests runs the tests that were saved, on an operator that differs from its former self by a text.
func savedTests(t *testing.T, changed string) (out string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "./saved.test", "-test.v", "-test.run", "Pass")
	cmd.Env = append(os.Environ(), "CHANGED="+changed)
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}
