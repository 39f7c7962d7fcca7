package fault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestActorMistakes proves that a mistake in an actor is a sentence, and that one which fails ends the exploration.
func TestActorMistakes(t *testing.T) {
	idle := func(context.Context, *World) error { return nil }
	tests := map[string]struct {
		why   string
		actor Actor
		want  string
	}{
		"no name":  {"reports could not name it", Actor{Act: idle}, "actor 1 has no name or no Act; give it both"},
		"no Act":   {"it would do nothing", Actor{Name: "kubelet"}, "actor 1 has no name or no Act; give it both"},
		"reserved": {"its changes would count as the operator's", Actor{Name: "operator", Act: idle}, `an actor is called "operator", which is not another controller; give it another name`},
		"fails":    {"the world is not as its author thinks", Actor{Name: "kubelet", Act: func(context.Context, *World) error { return errors.New("no node") }}, `actor "kubelet" failed, which is no fault of the operator: no node`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := Scenario{Name: "actors", Operator: Operator{SetUp: asks}, Actors: []Actor{test.actor}, Steps: []Step{Create(configMap("a"))}}
			_, err := explored(t, s, time.Minute)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %v, want %q in it", test.why, err, test.want)
			}
		})
	}
}

// TestActorFails proves that the error of an actor in a disturbed run is not taken for the operator's: it ends the exploration.
func TestActorFails(t *testing.T) {
	deleted := Actor{Name: "mourner", Act: func(ctx context.Context, w *World) error {
		return w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{})
	}}
	cm := configMap("a")
	_, err := explored(t, Scenario{
		Name: "mourns", Operator: Operator{SetUp: asks}, Actors: []Actor{deleted}, Before: []Step{Create(cm)},
		Steps: []Step{Merge(cm, `{"data":{"a":"b"}}`)}, Races: []Step{Delete(cm)},
	}, time.Minute)
	const want = `actor "mourner" failed, which is no fault of the operator: configmaps "a" not found`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
}

// TestLastError proves that a cluster at rest in a wrong state says what a controller returned last: the objects alone
// do not show it.
func TestLastError(t *testing.T) {
	cm := configMap("a")
	_, err := explored(t, Scenario{
		Name: "fails", Steps: []Step{Create(cm).Gone(cm)},
		Operator: Operator{SetUp: configMaps(func(context.Context, client.Client, *corev1.ConfigMap) error { return errors.New("no index") })},
	}, time.Minute)
	const want = "a still exists; its finalizers: ; the last error of controller configmaps, for default/a: no index"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
}
