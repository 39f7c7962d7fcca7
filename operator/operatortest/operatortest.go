// Package operatortest runs operators in tests as their users do: installed by the manifests that they
// print, under their own ServiceAccount, on the API server of package testenv.
//
// [Run] takes an operator's options and runs it within the test, which is all that most tests need:
//
//	op := operatortest.Run(t, options(), "--greeting=ahoy")
//	if err := op.Client.Create(ctx, &v1.Stream{ObjectMeta: metav1.ObjectMeta{Namespace: op.Namespace, Name: "orders"}}); err != nil {
//
// Where the process itself counts, because it is killed or its flags are tried, a [Binary] is an
// operator's program, by [Build] or [Self]. [Binary.Install] gives it an [Account] on a cluster, and
// [Binary.Start] runs it until the test ends.
//
// [Simulated] is the same operator for package fault of module kubesim, which plays it through every
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

// Operator is an operator that runs within a test.
type Operator struct {
	output

	// Client is an administrator's and knows the operator's kinds.
	Client client.WithWatch
	// Config is the administrator's.
	Config *rest.Config
	// Namespace is a new one, which the operator is installed in. Unless one of its kinds has no
	// namespace it works in no other, so that tests may run in parallel.
	Namespace string
	// Account is what the operator runs as.
	Account Account
}

// Run installs the operator that o describes and runs it until the test ends; flags are those of its
// manager. It serves nothing but its health, and needs no lease. Run returns when the operator is
// ready. The test fails if the operator ends with an error; one that fails shows the log.
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
	args := slices.Concat([]string{"manager", "--leader-elect=false"}, arguments(op.Account), flags)
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

// arguments let an operator run beside others, as an account.
func arguments(a Account) []string {
	return []string{"--kubeconfig", a.Kubeconfig, "--metrics-address=0", "--health-address=127.0.0.1:0", "--debug-address=0"}
}

// apart are the flags that keep the operators of tests apart.
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
