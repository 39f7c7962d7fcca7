package scenarios

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
	"github.com/trimtab-dev/trimtab/test/fault/natsfake"
)

// region: test

func TestStreams(t *testing.T) {
	s := &v1alpha1.Stream{ObjectMeta: metav1.ObjectMeta{Name: "orders"}}
	fault.Run(t, fault.Scenario{
		Name:        "streams",
		Operator:    fault.Operator(operatortest.Simulated(options)),
		ExternalAPI: func() fault.ExternalAPI { return natsfake.New() },
		Steps:       []fault.Step{fault.Create(s).Becomes(s, "Ready"), fault.Delete(s).Gone(s)},
		Lag:         900 * time.Millisecond,
	})
}

// options are those of the operator's main, with a client whose calls reach the fake.
func options(env *fault.Env) operator.Options {
	o := nats.Operator()
	o.Controllers = func() ([]operator.Controller, error) {
		c := nats.NewClient("nats://memory", carrier(env))
		return nats.Controllers(func(context.Context) (*nats.Client, error) { return c, nil }, 0, nil), nil
	}
	return o
}

// endregion: test

// What is wrong with an operator's options is said by the exploration, whatever of it is wrong.
func TestSimulatedMistakes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why     string
		options operator.Options
		flags   []string
		want    string
	}{
		"name":        {"it has to be in the manifests", operator.Options{Name: "A B"}, nil, `operator name "A B"`},
		"flag":        {"it would not start", options(nil), []string{"--loud"}, "unknown flag: --loud"},
		"controllers": {"it cannot be set up", operator.Options{Name: "a", Controllers: failing}, nil, "no licence"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := operatortest.Simulated(func(*fault.Env) operator.Options { return tt.options }, tt.flags...)
			_, err := o.RBAC.Open(".")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("reading the roles: %v; want %q (%s)", err, tt.want, tt.why)
			}
			if err := o.SetUp(nil, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("setting it up: %v; want %q (%s)", err, tt.want, tt.why)
			}
		})
	}
}

func failing() ([]operator.Controller, error) { return nil, errors.New("no licence") }
