package operator_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/testenv"
)

// besides is the name of an operator with an ordinary controller.
const besides = "besides"

// copyNotes adds a controller that the framework knows nothing of: it makes a ConfigMap of the note in
// the status of each Probe, which it finds by an index.
func copyNotes(mgr manager.Manager) error {
	const byNote = "status.note"
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &probe.Probe{}, byNote, func(o client.Object) []string { //nolint:forbidigo // nothing is running yet
		p, _ := o.(*probe.Probe)
		return []string{p.Status.Note}
	})
	if err != nil {
		return err
	}
	c := mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).Named("notes").For(&probe.Probe{}).Complete(reconcile.Func(
		func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			p := &probe.Probe{}
			if err := c.Get(ctx, req.NamespacedName, p); err != nil || p.Status.Note == "" {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			same := &probe.ProbeList{}
			if err := c.List(ctx, same, client.InNamespace(p.Namespace), client.MatchingFields{byNote: p.Status.Note}); err != nil {
				return ctrl.Result{}, err
			}
			note := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
				Data:       map[string]string{"note": p.Status.Note, "first": same.Items[0].Name},
			}
			return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, note))
		}))
}

// TestBeside: an ordinary controller and an index run in the same process, under the role that the
// manifests print.
func TestBeside(t *testing.T) {
	in := install(t, besides, nil)
	op := startOperator(t, in)
	op.awaitReady(t)
	orders := in.probe(t, "orders")
	testenv.Wait(t, in.client, orders, "the operator to greet", greeted)
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: "orders"}}
	testenv.Wait(t, in.client, note, "the ordinary controller to copy the note", func(m *corev1.ConfigMap) bool {
		return m.Data["note"] == "hello, orders" && m.Data["first"] == "orders"
	})
	if log := op.log(); strings.Contains(log, "forbidden: User") {
		t.Errorf("denied:\n%s", log)
	}
	op.stop(t, 0)
}

// TestSetupFails: what Setup cannot do ends the operator with its reason.
func TestSetupFails(t *testing.T) {
	cfg := testenv.Start(t)
	var said strings.Builder
	o := operator.Options{Name: "lone", Setup: func(manager.Manager) error { return errors.New("no certificate") }}
	args := []string{
		"--kubeconfig", testenv.Kubeconfig(t, cfg), "--leader-elect=false",
		"--metrics-address=0", "--health-address=0", "--debug-address=0",
	}
	if code := operator.Run(t.Context(), args, io.Discard, &said, o); code == 0 || !strings.Contains(said.String(), "no certificate") {
		t.Errorf("exit code %d: %s", code, said.String())
	}
}
