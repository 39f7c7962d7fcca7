package fault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// labeler is another controller, which labels what the operator annotated.
func labeler() Actor {
	return Actor{Name: "labeler", Act: func(ctx context.Context, w *World) error {
		var all corev1.ConfigMapList
		if err := w.Client.List(ctx, &all, client.InNamespace("default")); err != nil {
			return err
		}
		for i := range all.Items {
			cm := &all.Items[i]
			if cm.Annotations["asked"] == "" || cm.Labels["answer"] != "" {
				continue
			}
			before := cm.DeepCopy()
			cm.Labels = map[string]string{"answer": "yes"}
			return w.Client.Patch(ctx, cm, client.MergeFrom(before))
		}
		return nil
	}}
}

// asks is an operator that annotates ConfigMaps and waits for an answer, which it copies.
func asks(mgr ctrl.Manager, _ *Env) error {
	c := mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).Named("asks").For(&corev1.ConfigMap{}).Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		cm := &corev1.ConfigMap{}
		if err := c.Get(ctx, req.NamespacedName, cm); err != nil || cm.Namespace != "default" || cm.Name == "kube-root-ca.crt" {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		before := cm.DeepCopy()
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "asked", "yes")
		if cm.Labels["answer"] != "" {
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "answered", cm.Labels["answer"])
		}
		if len(before.Annotations) == len(cm.Annotations) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, c.Patch(ctx, cm, client.MergeFrom(before))
	}))
}

// TestActors proves that an actor answers whatever happens to the operator, so that all runs end alike.
func TestActors(t *testing.T) {
	cm := configMap("a")
	r := Explore(t, Scenario{
		Name: "asks", Operator: Operator{SetUp: asks}, Actors: []Actor{labeler()},
		Steps: []Step{Create(cm).Expecting(func(ctx context.Context, w *World) error {
			u, err := read(ctx, w, cm)
			if err == nil && u.GetAnnotations()["answered"] != "yes" {
				err = errors.New("nobody answered")
			}
			return err
		})},
	})
	for _, text := range r.texts() {
		t.Error(text)
	}
	if r.Schedules[Crashes] < 2 || r.Schedules[Races] == 0 {
		t.Errorf("played %v, want crashes at both writes and races", r.Schedules)
	}
}

// TestOthers proves that an operator may change what another controller made, and not what a user made.
func TestOthers(t *testing.T) {
	cm := configMap("a")
	claim := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string][]byte{"size": []byte("1")}}
	setUp := func(mgr ctrl.Manager, _ *Env) error {
		c := mgr.GetClient()
		return ctrl.NewControllerManagedBy(mgr).Named("grows").For(&corev1.ConfigMap{}).Watches(&corev1.Secret{}, &handler.EnqueueRequestForObject{}).Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			s := &corev1.Secret{}
			if err := c.Get(ctx, req.NamespacedName, s); err != nil || string(s.Data["size"]) == "2" {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			s.Data = map[string][]byte{"size": []byte("2")}
			return reconcile.Result{}, c.Update(ctx, s)
		}))
	}
	for name, step := range map[string]Step{"": Create(claim), "StatefulSet controller": Create(claim).As("StatefulSet controller")} {
		r := Explore(t, Scenario{
			Name: "grows", Operator: Operator{SetUp: setUp}, Steps: []Step{Create(cm), step}, Races: []Step{},
		}, Only(Duplicates))
		found := slices.ContainsFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.Violations[0].Message, "was overwritten") })
		if want := name == ""; found != want {
			t.Errorf("made by %q: found %t, want %t: %v %v", name, found, want, r.texts(), r)
		}
		if slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "changed nothing") }) {
			t.Errorf("made by %q: notes %q", name, r.Notes)
		}
	}
}
