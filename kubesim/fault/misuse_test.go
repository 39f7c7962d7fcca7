package fault

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
)

// uncopied is a shelf without Clone, shallow one whose copies have the same boxes, torn one whose
// copies have none, half one whose copies are something else.
type (
	uncopied struct{ *plainShelf }
	shallow  struct{ *plainShelf }
	torn     struct{ *plainShelf }
	half     struct{ *plainShelf }
)

// plainShelf has all that the toy wants, and no Clone.
type plainShelf struct{ boxes map[string]box }

func (s *plainShelf) Resources() (all []Resource) {
	for id, b := range s.boxes {
		all = append(all, Resource{Kind: "box", ID: id, Owner: b.owner, State: b.size, Ready: true})
	}
	return all
}

func (s *plainShelf) put(id string) (string, error) {
	s.boxes[id] = box{}
	return id, nil
}

func (s shallow) Clone() ExternalAPI { return shallow{&plainShelf{boxes: s.boxes}} }
func (s torn) Clone() ExternalAPI    { return torn{&plainShelf{boxes: map[string]box{}}} }
func (s half) Clone() ExternalAPI    { return uncopied{&plainShelf{boxes: maps.Clone(s.boxes)}} }

// storing is an operator that puts two boxes for the ConfigMap "a" on a shelf.
func storing[O interface {
	ExternalAPI
	put(id string) (string, error)
}](mgr ctrl.Manager, env *Env,
) error {
	return configMaps(func(ctx context.Context, _ client.Client, cm *corev1.ConfigMap) error {
		if cm.Name != "a" {
			return nil
		}
		for _, id := range []string{"box-1", "box-2"} {
			if _, err := Write(ctx, env, "put "+id, func(o O) (string, error) { return o.put(id) }); err != nil {
				return err
			}
		}
		return nil
	})(mgr, env)
}

const lakes = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lakes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: lakes, singular: lake, kind: Lake}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// bringsLakes is an operator that installs a CRD for the ConfigMap "a".
func bringsLakes(mgr ctrl.Manager, env *Env) error {
	return configMaps(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
		if cm.Name != "a" {
			return nil
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(lakes), &crd.Object); err != nil {
			return err
		}
		return client.IgnoreAlreadyExists(c.Create(ctx, crd))
	})(mgr, env)
}

func removeLakes() Step {
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	crd.SetName("lakes.example.com")
	return Delete(crd)
}

// TestMisuse proves that mistakes in a scenario that would make its author believe in more than was
// tried are told, each in one sentence.
func TestMisuse(t *testing.T) {
	empty := func() *plainShelf { return &plainShelf{boxes: map[string]box{}} }
	same := newShelf()
	tests := map[string]struct {
		why      string
		scenario Scenario
		want     string // empty if there is nothing wrong
	}{
		"nothing": {
			why:      "a scenario without a mistake",
			scenario: Scenario{ExternalAPI: newShelf, Operator: Operator{SetUp: toyOperator("")}, Lag: time.Second, Shared: []string{"configmaps", "deployments.apps"}},
		},
		"no API made": {
			why:      "a forgotten return would look like an API without any resource",
			scenario: Scenario{ExternalAPI: func() ExternalAPI { return nil }, Operator: Operator{SetUp: toyOperator("")}},
			want:     "ExternalAPI returned nil; leave it out if there is no external API",
		},
		"the same API": {
			why:      "a run would begin with what is left of the one before",
			scenario: Scenario{ExternalAPI: func() ExternalAPI { return same }, Operator: Operator{SetUp: toyOperator("")}},
			want:     "ExternalAPI returned the same fake for two worlds; make a new one each time",
		},
		"lag of nothing": {
			why:      "no external read would lag",
			scenario: Scenario{Operator: Operator{SetUp: configMaps(func(context.Context, client.Client, *corev1.ConfigMap) error { return nil })}, Lag: time.Second},
			want:     "Lag is set, but there is no ExternalAPI whose reads could lag",
		},
		"lag without Clone": {
			why:      "an earlier state that cannot be kept cannot be shown",
			scenario: Scenario{ExternalAPI: func() ExternalAPI { return uncopied{empty()} }, Operator: Operator{SetUp: storing[uncopied]}, Lag: time.Second},
			want:     "Lag is set, but no read can lag behind a fault.uncopied: it needs a method Clone",
		},
		"shallow Clone": {
			why:      "a schedule would begin with what was made after it",
			scenario: Scenario{ExternalAPI: func() ExternalAPI { return shallow{empty()} }, Operator: Operator{SetUp: storing[shallow]}},
			want:     ", which was made after it; copy maps, slices and the values of pointers",
		},
		"empty Clone": {
			why:      "a schedule would begin without what there was",
			scenario: Scenario{ExternalAPI: func() ExternalAPI { return torn{empty()} }, Operator: Operator{SetUp: storing[torn]}},
			want:     "loses or changes box box-1; copy maps, slices and the values of pointers",
		},
		"another Clone": {
			why:      "a copy has to be as good as what it is of",
			scenario: Scenario{ExternalAPI: func() ExternalAPI { return half{empty()} }, Operator: Operator{SetUp: storing[half]}},
			want:     "the Clone of a fault.half is a fault.uncopied, which has no method Clone itself; return what it was made of",
		},
		"another API": {
			why:      "an operator that takes the error for one of the API would look right",
			scenario: Scenario{ExternalAPI: func() ExternalAPI { return uncopied{empty()} }, Operator: Operator{SetUp: toyOperator("")}},
			want:     `"find" wants the external API as *fault.shelf, but the scenario's ExternalAPI is a fault.uncopied`,
		},
		"no API": {
			why:      "the same where there is none",
			scenario: Scenario{Operator: Operator{SetUp: toyOperator("")}},
			want:     `"find" wants the external API as *fault.shelf, but the scenario has no ExternalAPI`,
		},
		"a step at the API": {
			why:      "the API of a step is as wrong",
			scenario: Scenario{ExternalAPI: func() ExternalAPI { return uncopied{empty()} }, Operator: Operator{SetUp: storing[uncopied]}, Steps: []Step{Change("clear", func(*shelf) error { return nil })}},
			want:     `step 1, "clear": "clear" wants the external API as *fault.shelf, but the scenario's ExternalAPI is a fault.uncopied`,
		},
		"package variable": {
			why:      "what is kept there belongs to another process, or to another run",
			scenario: Scenario{ExternalAPI: newShelf, Operator: Operator{SetUp: keepsForEver()}},
			want: `"find" was called with the Env of another process: the operator keeps a client in a package variable, ` +
				`where it survives a restart; empty that in SetUp, and play one schedule at a time with fault.Workers(1)`,
		},
		"shared misspelt": {
			why:      "a name that is no kind has no effect",
			scenario: Scenario{ExternalAPI: newShelf, Operator: Operator{SetUp: toyOperator("")}, Shared: []string{"configmaps", "deployment.apps"}},
			want:     `Shared names "deployment.apps", which is not a kind of this cluster; write the plural and the group, as configmaps or deployments.apps`,
		},
		"shared came later": {
			why:      "a user may bring a kind with him",
			scenario: Scenario{ExternalAPI: newShelf, Operator: Operator{SetUp: toyOperator("")}, Shared: []string{"lakes.example.com"}, Steps: []Step{CreateYAML(lakes)}},
		},
		"shared was brought": {
			why:      "and so may the operator; what is gone in the end was a kind as well",
			scenario: Scenario{Operator: Operator{SetUp: bringsLakes}, Shared: []string{"lakes.example.com"}, Steps: []Step{Create(configMap("a")), removeLakes()}},
		},
		"shared singular came later": {
			why:      "what came has the same names as what was there",
			scenario: Scenario{ExternalAPI: newShelf, Operator: Operator{SetUp: toyOperator("")}, Shared: []string{"lake.example.com"}, Steps: []Step{CreateYAML(lakes)}},
			want:     `Shared names "lake.example.com", which is not a kind of this cluster; write the plural and the group, as configmaps or deployments.apps`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := tt.scenario
			s.Name = "misuse"
			if s.Steps == nil {
				s.Steps = []Step{Create(configMap("a"))}
			}
			_, err := explored(t, s, time.Minute, Crashes, Stale)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("%s: %v", tt.why, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%s: the error is %v, want %q in it", tt.why, err, tt.want)
			}
			if _, ok := errors.AsType[sandbox.MisuseError](err); tt.want != "" && !ok {
				t.Errorf("%s: %T is no misuse", tt.why, err)
			}
		})
	}
}

// keepsForEver sets up an operator that makes its client of the external API once.
func keepsForEver() func(ctrl.Manager, *Env) error {
	var once sync.Once
	var client *Env
	return func(mgr ctrl.Manager, env *Env) error {
		once.Do(func() { client = env })
		return toyOperator("")(mgr, client)
	}
}

// TestRefusals proves that roles which do not count, as no binding names them, are told as the
// cause of what comes of it.
func TestRefusals(t *testing.T) {
	s := toyLife("")
	s.Operator.RBAC = fstest.MapFS{"role.yaml": {Data: []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules: [{apiGroups: [""], resources: [configmaps], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manger}
`)}}
	_, err := explored(t, s, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "the operator was refused: ") || !strings.Contains(err.Error(), "watch configmaps (what it may do is in") {
		t.Errorf("roles that are not bound gave %v", err)
	}
}

// TestWayOut proves that an object which the API server refuses because of an empty field comes with what to do, and with no
// table of calls if the step made none.
func TestWayOut(t *testing.T) {
	empty := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{}}}}
	manifest := CreateYAML("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 0}]}")
	for name, test := range map[string]struct {
		step Step
		want bool
	}{"typed": {Create(empty), true}, "manifest": {manifest, false}} {
		t.Run(name, func(t *testing.T) {
			_, err := explored(t, Scenario{
				Name: "empty", Steps: []Step{test.step},
				Operator: Operator{SetUp: configMaps(func(context.Context, client.Client, *corev1.ConfigMap) error { return nil })},
			}, time.Minute)
			if err == nil || !strings.Contains(err.Error(), "Invalid value: 0") {
				t.Fatalf("got %v, want that the port is refused", err)
			}
			if got := strings.Contains(err.Error(), "or create the object from a manifest with fault.CreateYAML"); got != test.want {
				t.Errorf("it names the way out: %v, want %v: %v", got, test.want, err)
			}
			if strings.Contains(err.Error(), "the last calls") {
				t.Errorf("the step made no call, yet there is a table:\n%v", err)
			}
		})
	}
}

// TestEmptyValues tells values that a Go type has if nobody sets them from others.
func TestEmptyValues(t *testing.T) {
	for text, want := range map[string]bool{
		`spec.startupPolicy: Unsupported value: "": supported values: "LeaderCreated", "LeaderReady"`: true,
		`spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1`:         true,
		`spec.list: Invalid value: "null": spec.list in body must be of type array: "null"`:           true,
		`spec.size: Invalid value: 7: too many`:                                                       false,
		`spec.policy: Unsupported value: "Never"`:                                                     false,
	} {
		if got := emptyValue.MatchString(text); got != want {
			t.Errorf("%s: empty is %v, want %v", text, got, want)
		}
	}
}
