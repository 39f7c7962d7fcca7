package operator_test

import (
	"io"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestAsAuthorsDo is the test that doc.go tells authors to write.
func TestAsAuthorsDo(t *testing.T) {
	cfg := testenv.Start(t)
	objects, err := operator.Manifests(probeOperator(), operator.ManifestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for _, o := range objects {
		switch o := o.(type) {
		case *apiextensionsv1.CustomResourceDefinition:
			testenv.Install(t, cfg, o)
		case *rbacv1.ClusterRole:
			rules = o.Rules
		}
	}
	user := testenv.User(t, cfg, rules...)
	args := []string{
		"--kubeconfig", testenv.Kubeconfig(t, user), "--leader-elect=false",
		"--metrics-address=0", "--health-address=0", "--debug-address=0",
		"--greeting=ahoy",
	}
	var running sync.WaitGroup
	running.Go(func() {
		if code := operator.Run(t.Context(), args, io.Discard, t.Output(), probeOperator()); code != 0 {
			t.Errorf("exit code %d, want 0 when the test ends", code)
		}
	})
	t.Cleanup(running.Wait)

	c := testenv.Client(t, cfg, probe.AddToScheme)
	orders := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace(t, cfg), Name: "orders"}}
	if err := c.Create(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	if got := testenv.Wait(t, c, orders, "the operator to greet", greeted); got.Status.Note != "ahoy, orders" {
		t.Errorf("note %q, want the flag's greeting", got.Status.Note)
	}
}
