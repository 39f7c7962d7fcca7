package replay_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/inspect"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/replay"
	"github.com/trimtab-dev/trimtab/trace"
)

var update = flag.Bool("update", false, "accept what is written now into testdata")

// passOf is a pass with some events.
func passOf(number uint64, events ...trace.Event) inspect.Pass {
	o := trace.Object{Kind: "Widget", Namespace: "shop", Name: "front.a", UID: "u1"}
	p := inspect.Pass{Controller: "widget", Object: o, Number: number}
	for i, e := range events {
		at := time.Date(2026, 1, 2, 3, 4, 5, i, time.UTC)
		p.Records = append(p.Records, trace.Record{Time: at, Controller: "widget", Object: o, Pass: number, Event: e})
	}
	return p
}

// objectOf is the object of the passes, with more of it as YAML.
func objectOf(t *testing.T, more string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text := `
apiVersion: example.com/v1alpha1
kind: Widget
metadata:
  namespace: shop
  name: front.a
  uid: u1
  generation: 3
  resourceVersion: "12"
  creationTimestamp: "2026-01-02T03:00:00Z"
  finalizers: [widgets.example.com/finalizer]
  managedFields: [{manager: kubectl}]
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{}'
    trimtab.dev/paused: "false"
` + more
	if err := yaml.Unmarshal([]byte(text), u); err != nil {
		t.Fatal(err)
	}
	return u
}

const (
	record = "    trimtab.dev/external: '{\"id\":\"i-7\",\"uid\":\"u1\",\"cluster\":\"c1\"}'\n"
	ready  = "spec: {size: large, count: 2, login: {user: u, password: hunter2}, urls: ['https://u:hunter2@example.com']}\nstatus: {observedGeneration: 3, state: Ready, conditions: [{type: Ready, status: \"True\"}]}\n"
)

var (
	observed = trace.Call{Op: "observe", Target: "i-7", Result: "Available"}
	observe  = trace.Decision{Rule: "D-00", Action: "observe"}
	status   = trace.Write{Verb: "apply", Subresource: "status", ResourceVersion: "12"}
)

// TestWrite compares what is written with files.
func TestWrite(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why    string
		pass   inspect.Pass
		object *unstructured.Unstructured
		module string
	}{
		"first": {
			"what the pass wrote is taken back", passOf(1, trace.Start{Generation: 3},
				trace.Write{Verb: "patch", Fields: []string{"metadata.annotations", "metadata.finalizers"}, ResourceVersion: "11"}, trace.Transition{To: "Pending"},
				observe, trace.Call{Op: "observe", Target: "i-7", Result: "Missing"}, trace.Call{Op: "create", Target: "i-7", Mutating: true}, status, trace.End{Outcome: "After", Again: time.Minute}),
			objectOf(t, record+ready), "example.com/widgets",
		},
		"update": {
			"the resource is made as it was found", passOf(7, trace.Start{Generation: 3}, observe, observed,
				trace.Drift{Path: "spec.size", Want: `"large"`, Have: `"small"`, Effect: "InPlace"}, trace.Drift{Path: "spec.count", Want: "2", Have: "(unset)", Effect: "InPlace"},
				trace.Drift{Path: "labels", Want: "1", Have: "2", Effect: "InPlace"}, trace.Drift{Path: "spec.login.password", Want: trace.Redacted, Have: trace.Redacted, Effect: "InPlace"},
				trace.Transition{From: "Ready", To: "Updating"}, trace.Call{Op: "update", Target: "i-7", Mutating: true, Err: "busy"},
				trace.Drift{Path: "spec.size", Want: `"large"`, Have: `"changed since"`, Effect: "InPlace"}, status, trace.End{Outcome: "Fail", Err: "busy"}),
			objectOf(t, record+ready), "example.com/widgets",
		},
		"deletion": {
			"the object was created before it was deleted", passOf(9, trace.Start{Generation: 2, Deleting: true, Attempt: 2}, observe, observed, trace.End{Outcome: "Again"}),
			objectOf(t, record+"  deletionTimestamp: \"2026-01-02T03:04:00Z\"\n"+ready), "example.com/widgets",
		},
		"loop": {
			"there is no API, and the module is not known", passOf(2, trace.Start{Generation: 1, ResourceVersion: "4", Attempt: 1}, trace.Write{Verb: "apply", Subresource: "status", ResourceVersion: "5"}, trace.End{Outcome: "Done", Err: "a ` in it"}),
			objectOf(t, "  deletionTimestamp: \"2026-01-02T03:04:00Z\"\n"+ready), "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := replay.Write(replay.Input{Pass: tt.pass, Object: tt.object, Module: tt.module})
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".golden")
			got := "// " + file.Name + "\n" + file.Text
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s\nto accept: go test -run TestWrite -update", tt.why, diff)
			}
			if strings.Contains(got, "hunter2") {
				t.Error("a password is in the test")
			}
		})
	}
}

// TestHostile: what somebody wrote into an object stays in the comments and literals of a test.
func TestHostile(t *testing.T) {
	t.Parallel()
	const hostile = "x\r\n\x00\ufeff\xff}\nfunc init() { panic(1) }\n/* ` "
	pass := passOf(1, trace.Start{Generation: 3}, observe, trace.Call{Op: hostile, Target: hostile, Result: hostile, Err: hostile},
		trace.Drift{Path: hostile, Want: hostile, Have: hostile}, trace.Transition{From: hostile, To: hostile}, status, trace.End{Outcome: hostile})
	pass.Controller = hostile
	object := objectOf(t, record+ready)
	object.SetLabels(map[string]string{"x": hostile})
	file, err := replay.Write(replay.Input{Pass: pass, Object: object, Module: "example.com/widgets"})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file.Name, file.Text, 0)
	if err != nil {
		t.Fatalf("%v\n%s", err, file.Text)
	}
	for _, d := range parsed.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Name.Name != "TestWidgetFrontAPass1" {
			t.Errorf("the test has a function %s:\n%s", f.Name.Name, file.Text)
		}
	}
}

// TestSecrets: what a field's name says is a secret is left out, and what says where a secret is stays.
func TestSecrets(t *testing.T) {
	t.Parallel()
	object := objectOf(t, `
spec:
  adminPassword: HIDDEN
  authToken: HIDDEN
  db_password: HIDDEN
  tls.key: HIDDEN
  tokens: [HIDDEN]
  credentials: {user: HIDDEN, more: [{pin: HIDDEN}]}
  env: [{name: DB_PASSWORD, value: HIDDEN}, {name: COLOUR, value: SHOWN1}]
  passwordSecretRef: {name: SHOWN2, key: SHOWN3}
  secretName: SHOWN4
  apiTokenSecret: {name: SHOWN5, namespace: SHOWN6}
`)
	file, err := replay.Write(replay.Input{Pass: passOf(1, trace.Start{Generation: 3}, trace.End{Outcome: "Done"}), Object: object})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(file.Text, "SHOWN"); n != 6 || strings.Contains(file.Text, "HIDDEN") || !strings.Contains(file.Text, "look for others before you commit") {
		t.Errorf("%d of 6 references are there:\n%s", n, file.Text)
	}
}

// TestRefuses: a pass that cannot be repeated is refused with the way out.
func TestRefuses(t *testing.T) {
	t.Parallel()
	start, end := trace.Start{Generation: 3}, trace.End{Outcome: "Done"}
	another := objectOf(t, ready)
	another.SetUID("u2")
	tests := map[string]struct {
		why    string
		pass   inspect.Pass
		object *unstructured.Unstructured
		says   string
	}{
		"no beginning":   {"half a pass cannot be compared", passOf(1, observe, end), objectOf(t, ready), "the beginning of the pass is not recorded"},
		"no end":         {"it may go on", passOf(1, start, observe), objectOf(t, ready), "the end of the pass is not recorded"},
		"vanished":       {"there is no object", passOf(1, trace.Start{Vanished: true}, end), objectOf(t, ready), "gone already"},
		"another object": {"the passes are not about it", passOf(1, start, end), another, "another one by now"},
		"not deleted":    {"an older object had the name", passOf(1, trace.Start{Deleting: true}, end), objectOf(t, ready), "was being deleted, and is not any more"},
		"a component":    {"looptest does not run it", passOf(1, start, end), objectOf(t, "status: {inventory: []}\n"), "componenttest"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := replay.Write(replay.Input{Pass: tt.pass, Object: tt.object}); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q: %s", err, tt.says, tt.why)
			}
		})
	}
}
