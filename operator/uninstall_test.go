package operator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	"github.com/trimtab-dev/trimtab/testenv"
)

// cleaner has something to clean up.
type cleaner struct{ greeter }

func (cleaner) Cleanup(context.Context, *loop.Run[*probe.Probe]) loop.CleanupOutcome {
	return loop.CleanedUp()
}

// cleaningOperator writes finalizers.
func cleaningOperator() operator.Options {
	o := probeOperator()
	o.Name = "cleaning-operator"
	o.Flags = nil
	o.Controllers = func() ([]operator.Controller, error) {
		return []operator.Controller{loop.New(cleaner{greeter{new("hello")}}, loop.Options[*probe.Probe]{})}, nil
	}
	return o
}

const probeFinalizer = "probes.probe.trimtab.dev/finalizer"

// TestUninstall runs the command with each policy, in the namespace of an operator. It runs alone, as those of plan do: operators
// of others would change the objects.
func TestUninstall(t *testing.T) {
	op := operatortest.Run(t, cleaningOperator())
	admin := testenv.Kubeconfig(t, op.Config)
	run := func(policy, timeout string) ran {
		return runArgs(t, cleaningOperator(), "uninstall", "--policy="+policy, "--timeout="+timeout, "--",
			"--kubeconfig="+admin, "--namespace="+op.Namespace, "--watch-namespaces="+op.Namespace, "--installation="+op.Namespace)
	}
	if got := run("refuse", "5m"); got.Code != 0 || got.Out != "cleaning-operator: no object needs the operator\n" {
		t.Errorf("without objects: %+v", got)
	}
	create := func(name string) *probe.Probe {
		p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: op.Namespace, Name: name}}
		if err := op.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return testenv.Wait(t, op.Client, p, "a finalizer and a status", func(p *probe.Probe) bool { return len(p.Finalizers) == 1 && greeted(p) })
	}
	first := create("first")
	for i := range 22 {
		create(fmt.Sprintf("more-%02d", i))
	}
	got := run("refuse", "5m")
	if want := "cleaning-operator: 23 objects exist: Probe " + op.Namespace + "/first, Probe " + op.Namespace + "/more-00, "; got.Code != 1 ||
		!strings.HasPrefix(got.ErrOut, want) || !strings.Contains(got.ErrOut, "/more-18, 3 more; nothing would delete what they stand for") || !strings.Contains(got.ErrOut, "helm upgrade, before helm uninstall") {
		t.Errorf("refuse: %+v\nwant exit code 1, and 20 of 23 objects, and the way out", got)
	}
	if live := testenv.Wait(t, op.Client, first.DeepCopy(), "the object", func(*probe.Probe) bool { return true }); live.ResourceVersion != first.ResourceVersion {
		t.Error("refusing changed an object")
	}
	if got := run("cascade", "5m"); got.Code != 0 || strings.Count(got.Out, "cleaning-operator: deleting Probe ") != 23 {
		t.Errorf("cascade: %+v", got)
	}
	testenv.Gone(t, op.Client, first, "deletion by cascade")
}

// TestUninstallWithoutOperator: what needs the operator is named when its time is over, and can be left.
func TestUninstallWithoutOperator(t *testing.T) {
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, probe.CRDs)
	c, namespace := testenv.Client(t, cfg, probe.AddToScheme), testenv.Namespace(t, cfg)
	admin := testenv.Kubeconfig(t, cfg)
	run := func(args ...string) ran {
		return runArgs(t, cleaningOperator(), append(append([]string{"uninstall"}, args...), "--", "--kubeconfig="+admin, "--namespace="+namespace, "--watch-namespaces="+namespace)...)
	}
	const foreign = "example.org/keep"
	p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", Finalizers: []string{foreign, probeFinalizer}}}
	if err := c.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	// The cluster has the CRD of an older release, without the version that this one stores.
	newer := cleaningOperator()
	newer.CRDs = changedCRDs("    storage: true\n    subresources:\n      status: {}\n", "    storage: false\n    subresources: {status: {}}\n  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n")
	if got := runArgs(t, newer, "uninstall", "--", "--kubeconfig="+admin, "--namespace="+namespace, "--watch-namespaces="+namespace); got.Code != 1 || !strings.Contains(got.ErrOut, "1 object exists: Probe "+namespace+"/a;") {
		t.Errorf("another version: %+v", got)
	}
	if got := run("--policy=orphan"); got.Code != 0 || got.Out != "cleaning-operator: left Probe "+namespace+"/a\n" {
		t.Errorf("orphan: %+v", got)
	}
	testenv.Wait(t, c, p, "only the finalizer of others", func(p *probe.Probe) bool {
		return len(p.Finalizers) == 1 && p.Finalizers[0] == foreign && p.DeletionTimestamp == nil
	})
	if got := run("--policy=cascade", "--timeout=10s"); got.Code != 1 || !strings.Contains(got.ErrOut, "after 10s, 1 object exists: Probe "+namespace+"/a; their conditions say what") {
		t.Errorf("cascade: %+v", got)
	}
	p = testenv.Wait(t, c, p, "deletion to wait for others", func(p *probe.Probe) bool { return p.DeletionTimestamp != nil })
	p.Finalizers = nil
	if err := c.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	testenv.Gone(t, c, p, "deletion by cascade")
	for want, args := range map[string][]string{
		`--policy "keep": use refuse, cascade or orphan`: {"--policy=keep"},
		`too many arguments ["probes"]`:                  {"probes"},
	} {
		if got := run(args...); got.Code != 1 || !strings.Contains(got.ErrOut, want) {
			t.Errorf("%q: %+v, want exit code 1 and %q", args, got, want)
		}
	}
}
