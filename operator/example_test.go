package operator_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
)

// greeter writes a greeting into the status of its objects.
type greeter struct{ word *string }

func (g greeter) Reconcile(_ context.Context, r *loop.Run[*probe.Probe]) loop.Outcome {
	r.Obj.Status.Note = *g.word + ", " + r.Obj.Name
	r.Conditions().True("Ready", "Greeted", "")
	return loop.Done()
}

// probeOperator describes a complete operator. Its main function would be
//
//	func main() { operator.Main(probeOperator()) }
func probeOperator() operator.Options {
	word := new("hello")
	return operator.Options{
		Name:        "probe-operator",
		AddToScheme: probe.AddToScheme,
		CRDs:        probe.CRDs,
		Flags:       func(f *pflag.FlagSet) { f.StringVar(word, "greeting", *word, "what to say") },
		Controllers: func() ([]operator.Controller, error) {
			return []operator.Controller{loop.New(greeter{word}, loop.Options[*probe.Probe]{})}, nil
		},
	}
}

// An operator knows its manifests, including the permissions it needs, without a cluster.
func Example() {
	objects, err := operator.Manifests(probeOperator(), operator.ManifestOptions{Namespace: "probes"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range objects {
		fmt.Println(o.GetObjectKind().GroupVersionKind().Kind, o.GetName())
		if role, ok := o.(*rbacv1.ClusterRole); ok {
			for _, r := range role.Rules {
				fmt.Println("  may", strings.Join(r.Verbs, ", "), strings.Join(r.Resources, ", "))
			}
		}
	}
	// Output:
	// CustomResourceDefinition probes.probe.trimtab.dev
	// Namespace probes
	// ServiceAccount probe-operator
	// ClusterRole probe-operator
	//   may create, patch events
	//   may get, list, watch, patch probes
	//   may patch probes/status
	// ClusterRoleBinding probe-operator
	// Role probe-operator-leader-election
	// RoleBinding probe-operator-leader-election
	// Deployment probe-operator
}
