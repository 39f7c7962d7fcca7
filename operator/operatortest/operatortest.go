// Package operatortest runs operators in tests the way users run them: installed from the manifests
// that they print, with their own service account, on the API server of package testenv.
//
// [Run] takes the options of an operator and runs it in the test's process, which is all that most
// tests need:
//
//	op := operatortest.Run(t, options(), "--greeting=ahoy")
//	if err := op.Client.Create(ctx, &v1.Stream{ObjectMeta: metav1.ObjectMeta{Namespace: op.Namespace, Name: "orders"}}); err != nil {
//
// Tests that kill the process or check its command line use a [Binary], the program of an operator,
// which [Build] or [Self] returns. [Binary.Install] creates an [Account] for it on a cluster, and
// [Binary.Start] runs it until the test ends.
//
// [Simulated] adapts an operator for package fault of module kubesim, which runs it through every
// crash and every single fault.
package operatortest

import (
	"context"
	"io"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/testenv"
)

// Operator is an operator that runs in a test.
type Operator struct {
	output

	// Client has the permissions of an administrator and knows the operator's kinds.
	Client client.WithWatch
	// Config is the client configuration of an administrator.
	Config *rest.Config
	// Namespace is a new namespace in which the operator is installed. The operator reconciles
	// only objects in this namespace, so that tests can run in parallel, unless one of its
	// kinds is cluster-scoped.
	Namespace string
	// Account is the operator's service account.
	Account Account
}

// Run installs the operator that o describes and runs it until the test ends, with the given flags
// of its manager. The operator serves only its health endpoints and does not use leader election. Run
// returns when the operator is ready. The test fails if the operator ends with an error; if the
// test fails, it shows the operator's log.
func Run(t testing.TB, o operator.Options, flags ...string) *Operator {
	t.Helper()
	cfg := testenv.Start(t)
	add := o.AddToScheme
	if add == nil {
		add = func(*runtime.Scheme) error { return nil }
	}
	op := &Operator{
		output: output{t: t, ended: make(chan struct{})}, Config: cfg,
		Client: testenv.Client(t, cfg, add), Namespace: testenv.Namespace(t, cfg),
	}
	flags = append(op.apart(o), flags...)
	objects, err := operator.Manifests(o, operator.ManifestOptions{Namespace: op.Namespace, Args: flags})
	if err != nil {
		t.Fatal(err)
	}
	op.Account = install(t, cfg, op.Namespace, objects)
	args := slices.Concat([]string{"manager", "--leader-elect=false", "--webhook-address=127.0.0.1:0"}, arguments(op.Account), flags)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		defer close(op.ended)
		if code := operator.Run(ctx, args, io.Discard, &op.output, o); code != 0 {
			t.Errorf("the operator ended with exit code %d", code)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-op.ended
		op.show()
	})
	op.Ready()
	return op
}

// arguments returns flags with which an operator runs as account a, next to other operators.
func arguments(a Account) []string {
	return []string{"--kubeconfig", a.Kubeconfig, "--metrics-address=0", "--health-address=127.0.0.1:0", "--debug-address=0"}
}

// apart returns the flags that separate the operators of different tests.
func (op *Operator) apart(o operator.Options) []string {
	op.t.Helper()
	flags := []string{"--installation=" + op.Namespace}
	objects, err := operator.Manifests(o, operator.ManifestOptions{Namespace: op.Namespace, Args: flags})
	if err != nil {
		op.t.Fatal(err)
	}
	for _, obj := range objects {
		if crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok && crd.Spec.Scope == apiextensionsv1.ClusterScoped {
			return flags
		}
	}
	return append(flags, "--watch-namespaces="+op.Namespace)
}
