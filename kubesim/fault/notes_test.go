package fault

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestNotes proves that what a scenario leaves unchecked is told, and that nothing is said of one
// that leaves nothing.
func TestNotes(t *testing.T) {
	a, b := configMap("a"), configMap("b")
	lazy := configMaps(func(context.Context, client.Client, *corev1.ConfigMap) error { return nil })
	idle := func(ctrl.Manager, *Env) error { return nil }
	looks := func(mgr ctrl.Manager, env *Env) error {
		return configMaps(func(ctx context.Context, _ client.Client, _ *corev1.ConfigMap) error {
			_, err := Read(ctx, env, "find", func(s *shelf) (string, error) { return s.find("a"), nil })
			return err
		})(mgr, env)
	}
	const didNothing = "the operator neither reconciled nor wrote anything; its controllers have to be set up with the manager and to watch what the steps make"
	const wroteNothing = "the operator wrote nothing, so there is nothing to crash at"
	tests := map[string]struct {
		why    string
		change func(*Scenario)
		want   []string
	}{
		"nothing": {"a scenario that leaves nothing out", func(*Scenario) {}, nil},
		"no steps": {
			"what users do is what a scenario is about",
			func(s *Scenario) { s.Steps, s.Operator.SetUp, s.ExternalAPI = nil, lazy, nil },
			[]string{"there are no steps, so nothing but the start of the operator is played", didNothing},
		},
		"no expectation": {
			"an operator that does nothing would pass",
			func(s *Scenario) { s.Steps = s.Steps[:2] },
			[]string{"no step expects anything, so whatever the undisturbed run comes to is taken for right; say what it should be with Becomes, Has, Gone or Expecting"},
		},
		"steps without effect": {
			"a delete of what is not there, and a change to what is there already, look like steps",
			func(s *Scenario) {
				s.Steps = slices.Insert(s.Steps, 2, Delete(b), Merge(a, `{"data":{"size":"2"}}`).Named("twice"), Wait(time.Minute), Step{Name: "look"})
			},
			[]string{`step 3, "delete b", changed nothing`, `step 4, "twice", changed nothing`},
		},
		"no controller": {
			"a manager without controllers runs well",
			func(s *Scenario) { s.Operator.SetUp, s.ExternalAPI = idle, nil; s.Steps[2] = Delete(a).Gone(a) },
			[]string{didNothing},
		},
		"own requests": {
			"what is not seen cannot be judged",
			func(s *Scenario) {
				s.ExternalAPI = nil
				s.Operator.SetUp = func(mgr ctrl.Manager, _ *Env) error {
					_, err := controller.NewTyped("keys", mgr, controller.TypedOptions[string]{
						Reconciler: reconcile.TypedFunc[string](func(context.Context, string) (reconcile.Result, error) { return reconcile.Result{}, nil }),
					})
					return err
				}
			},
			[]string{
				`controller "keys" has a request type of its own: its calls are disturbed, but its reconciles are not seen, so none begins with a stale view and none counts as a hot loop (I13)`,
				wroteNothing,
			},
		},
		"no write": {
			"no write, no crash",
			func(s *Scenario) { s.Operator.SetUp, s.ExternalAPI = lazy, nil },
			[]string{wroteNothing},
		},
		"no external call": {
			"a client of the external API that goes by another way is never disturbed",
			func(s *Scenario) { s.Operator.SetUp = lazy },
			[]string{wroteNothing, "the external API was never called, so no such call is disturbed; the operator's client has to go through fault.HTTP, or through Read and Write"},
		},
		"nothing listed": {
			"what Things does not tell nobody can judge",
			func(s *Scenario) { s.Operator.SetUp = looks },
			[]string{wroteNothing, "Resources never listed anything, so no external resource can be missed, created twice or left behind (I2, I3, I4, I8)"},
		},
		"no owner": {
			"what is the operator's and does not say so is not missed",
			func(s *Scenario) {
				s.ExternalAPI = func() ExternalAPI { return uncopied{&plainShelf{boxes: map[string]box{}}} }
				s.Operator.SetUp = storing[uncopied]
			},
			[]string{"box box-1 was created by the operator and never had an Owner, so I2, I3, I4 and I8 do not cover it"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := toyLife("")
			tt.change(&s)
			r, err := explored(t, s, time.Minute, Replacements)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, r.Notes); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}
