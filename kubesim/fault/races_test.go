package fault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestDependencies proves that no race deletes what the operator only needs, unless the scenario says so.
func TestDependencies(t *testing.T) {
	login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login", Namespace: "default"}, StringData: map[string]string{"user": "x"}}
	a := configMap("a")
	s := Scenario{
		Name: "login", Steps: []Step{Create(login), Create(a)},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			secret := &corev1.Secret{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(login), secret); err != nil {
				return 0, err
			}
			if cm.Annotations["user"] == string(secret.Data["user"]) {
				return 0, nil
			}
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "user", string(secret.Data["user"]))
			return 0, c.Update(ctx, cm)
		})},
	}
	note := func(n string) bool {
		return strings.HasPrefix(n, "no race deletes login, which objects that are created later may depend on")
	}
	r := Explore(t, s, Only(Races))
	for _, text := range r.texts() {
		t.Errorf("the operator is blamed for what a user did:\n%s", text)
	}
	if !slices.ContainsFunc(r.Notes, note) || r.Schedules[Races] == 0 {
		t.Errorf("%v were played, the notes are %q", r.Schedules, r.Notes)
	}
	s.Races = []Step{Delete(login), Recreate(login)}
	r = Explore(t, s, Only(Races))
	if len(r.Findings) == 0 || slices.ContainsFunc(r.Notes, note) {
		t.Errorf("a race that is named was not played: %q", r.Notes)
	}
}

// TestLessOfTheDeleted proves that what is not made because a user has deleted the object is no finding, and
// that what is lost is one.
func TestLessOfTheDeleted(t *testing.T) {
	for loses, want := range map[bool]int{false: 0, true: 1} {
		a := configMap("a")
		s := Scenario{
			Name: "keeps", Steps: []Step{Create(a)}, Races: []Step{Delete(a)},
			Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
				if cm.Annotations["seen"] == "" {
					metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "seen", "yes")
					if err := c.Update(ctx, cm); err != nil {
						if loses && len(cm.Annotations) > 0 {
							_ = c.Delete(ctx, configMap("kept"))
						}
						return 0, client.IgnoreNotFound(err)
					}
				}
				kept := configMap("kept") // it outlives a
				kept.Labels = map[string]string{"of": "a"}
				return 0, client.IgnoreAlreadyExists(c.Create(ctx, kept))
			})},
		}
		if loses { // it was there before
			kept := configMap("kept")
			kept.Labels = map[string]string{"of": "a"}
			s.Steps = []Step{Create(kept), Create(a)}
		}
		r := Explore(t, s, Only(Races), Waive(I4, "it is kept on purpose"), Waive(I5, "it tries to create each time"), Waive(I10, "this test wants it to"))
		if got := len(r.texts()); got != want {
			t.Errorf("loses %v: %d findings, want %d:\n%s", loses, got, want, strings.Join(r.texts(), "\n"))
		}
	}
}

// TestHistoryOfTheDeleted proves that nobody blames an operator for what a user's delete leaves if the object is deleted
// before the operator had done anything for it. Here the garbage collector deletes a Secret together with ConfigMap a
// from the moment at which a owns it. The operator makes a ConfigMap with the name of the Secret, and so has reconciles of that name.
func TestHistoryOfTheDeleted(t *testing.T) {
	a, login := configMap("a"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login", Namespace: "default"}}
	pass := func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
		if cm.Annotations["seen"] == "" {
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "seen", "yes")
			return client.IgnoreNotFound(c.Update(ctx, cm))
		}
		secret := &corev1.Secret{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(login), secret); err != nil {
			return client.IgnoreNotFound(err)
		}
		if len(secret.OwnerReferences) == 0 || secret.OwnerReferences[0].UID != cm.UID {
			secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: cm.Name, UID: cm.UID}}
			if err := c.Update(ctx, secret); err != nil {
				return client.IgnoreNotFound(err)
			}
		}
		return client.IgnoreAlreadyExists(c.Create(ctx, configMap("login")))
	}
	r := Explore(t, Scenario{
		Name: "collected", Steps: []Step{Create(login), Create(a)}, Shared: []string{"secrets"},
		Operator: Operator{SetUp: func(mgr ctrl.Manager, _ *Env) error {
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
				func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
					cm := &corev1.ConfigMap{}
					if err := mgr.GetClient().Get(ctx, req.NamespacedName, cm); err != nil || cm.Name != "a" {
						return reconcile.Result{}, client.IgnoreNotFound(err)
					}
					return reconcile.Result{}, pass(ctx, mgr.GetClient(), cm)
				}))
		}},
	}, Only(Races), Waive(I4, "it is kept on purpose"), Waive(I5, "it tries to create each time"))
	for _, text := range r.texts() {
		t.Errorf("the operator is blamed for what a user did:\n%s", text)
	}
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, "no race deletes login, ") }) || r.Schedules[Races] == 0 {
		t.Errorf("%v were played, the notes are %q", r.Schedules, r.Notes)
	}
}

// TestEarlyChange proves that a step in which a user's change comes early may end as if it had come before the step,
// and must not end otherwise. The operator creates b an hour after a, unless a is suspended by then.
func TestEarlyChange(t *testing.T) {
	for gives, want := range map[string]int{"up": 1, "way": 0} {
		a := configMap("a")
		r := Explore(t, Scenario{
			Name: "suspended", Steps: []Step{Create(a), Wait(time.Hour), Merge(a, `{"data":{"suspend":"yes"}}`)},
			Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
				if left := time.Until(cm.CreationTimestamp.Add(time.Hour)); left > 0 {
					return left, nil
				}
				if cm.Data["suspend"] != "" || cm.Annotations["created"] != "" || cm.Annotations["given"] != "" {
					return 0, nil
				}
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "created", "b")
				err := c.Update(ctx, cm)
				if err == nil {
					return 0, client.IgnoreAlreadyExists(c.Create(ctx, configMap("b")))
				}
				if gives == "up" && apierrors.IsConflict(err) {
					err = c.Patch(ctx, configMap("a"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"given":"up"}}}`)))
				}
				return 0, err
			})},
		}, Only(Races), Waive(I5, "it checks the time after each restart"), Waive(I4, "b is kept on purpose"))
		if got := len(r.texts()); got != want || r.Schedules[Races] == 0 {
			t.Errorf("it gives %s: %d findings of %v, want %d:\n%s", gives, got, r.Schedules, want, strings.Join(r.texts(), "\n"))
		}
		for _, text := range r.texts() {
			if !strings.Contains(text, "(- if the user does so at rest, + here)") || strings.Contains(text, "without the disturbance") {
				t.Errorf("the report does not say with what the run is compared:\n%s", text)
			}
		}
	}
}

// TestEarlyChangeOfTheNew proves that a change which comes before the operator has written anything about a new object may
// end as if the object had been created so, and must not end otherwise. What the operator notes of a suspended object
// stays when that is resumed.
func TestEarlyChangeOfTheNew(t *testing.T) {
	a := configMap("a")
	a.Data = map[string]string{"suspend": "yes", "size": "1"}
	manifest := CreateYAML("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}, data: {suspend: 'yes', size: '1'}}")
	for _, test := range []struct {
		gives  string
		create Step
		want   int
	}{{"up", Create(a), 1}, {"way", Create(a), 0}, {"way", manifest, 0}} {
		r := Explore(t, Scenario{
			Name: "resumed", Steps: []Step{test.create, Merge(a, `{"data":{"suspend":null}}`)}, Shared: []string{"configmaps"},
			Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
				want := ""
				switch {
				case cm.Annotations["given"] != "":
				case cm.Data["suspend"] != "":
					want = "True"
				case cm.Annotations["suspended"] != "":
					want = "False"
				}
				if cm.Annotations["suspended"] == want {
					return 0, nil
				}
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "suspended", want)
				err := c.Update(ctx, cm)
				if test.gives == "up" && apierrors.IsConflict(err) {
					err = c.Patch(ctx, configMap("a"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"given":"up"}}}`)))
				}
				return 0, err
			})},
		}, Only(Races))
		if got := len(r.texts()); got != test.want || r.Schedules[Races] == 0 {
			t.Errorf("it gives %s: %d findings of %v, want %d:\n%s", test.gives, got, r.Schedules, test.want, strings.Join(r.texts(), "\n"))
		}
	}
}

// TestNothingYet proves that no race creates an object before the step that creates it.
func TestNothingYet(t *testing.T) {
	a, b := configMap("a"), configMap("b")
	r := Explore(t, Scenario{
		Name: "order", Steps: []Step{Create(b), Merge(b, `{"data":{"ready":"yes"}}`), Create(a)},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			before := configMap("b")
			if err := c.Get(ctx, client.ObjectKeyFromObject(b), before); err != nil || cm.Annotations["seen"] != "" {
				return 0, client.IgnoreNotFound(err)
			}
			if before.Data["ready"] == "yes" {
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "seen", "yes")
				return 0, c.Update(ctx, cm)
			}
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "waits", time.Now().String())
			return time.Minute, c.Update(ctx, cm)
		})},
	}, Only(Races))
	for _, text := range r.texts() {
		t.Errorf("a user created the object early:\n%s", text)
	}
	if r.Pruned[TooEarly] == 0 || r.Schedules[Races] == 0 {
		t.Errorf("%v were played, %v not", r.Schedules, r.Pruned)
	}
}

// TestTakenBack proves that a user may take back what a step asks for, before the operator has seen it, whether the
// scenario names that race or not.
func TestTakenBack(t *testing.T) {
	victim, request := configMap("victim"), configMap("a")
	s := Scenario{
		Name: "requests", Steps: []Step{Create(victim), Create(request).Gone(victim)},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			if cm.Annotations["seen"] == "" {
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "seen", "yes")
				return 0, c.Update(ctx, cm)
			}
			return 0, client.IgnoreNotFound(c.Delete(ctx, configMap("victim")))
		})},
	}
	for name, races := range map[string][]Step{"by default": nil, "named": {Delete(request)}} {
		s.Races = races
		r := Explore(t, s, Only(Races), Waive(I10, "it deletes by name"))
		for _, text := range r.texts() {
			t.Errorf("%s: %s", name, text)
		}
		if r.Schedules[Races] == 0 {
			t.Errorf("%s: no race was played", name)
		}
	}
}

// TestWithoutWhatItNames proves that no operator is blamed for what becomes of a user's object, and of what was made
// for it, after a user has deleted another object that it names, although the operator works on both. What it leaves
// of the deleted one is its fault.
func TestWithoutWhatItNames(t *testing.T) {
	tests := map[string]struct {
		why  string
		kept bool
		want int
	}{
		"depends": {"a Pod without its service account waits, whatever was done before", false, 0},
		"leaves":  {"what was made for the deleted object stays", true, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			robot := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot", Namespace: "default"}}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Spec: corev1.PodSpec{
				ServiceAccountName: "robot", Containers: []corev1.Container{{Name: "c", Image: "i"}},
			}}
			r := Explore(t, Scenario{
				Name: name, Steps: []Step{Create(robot), Create(pod)}, Races: []Step{Delete(robot)}, Shared: []string{"pods", "serviceaccounts"},
				Operator: Operator{SetUp: func(mgr ctrl.Manager, _ *Env) error { return setUpRobots(mgr, test.kept) }},
			}, Only(Races), Waive(I4, "this is about what is left"), Waive(I5, "it tries again and again"))
			if got := len(r.texts()); got != test.want || r.Schedules[Races] == 0 {
				t.Errorf("%s: %d findings, want %d:\n%s", test.why, got, test.want, strings.Join(r.texts(), "\n"))
			}
		})
	}
}

// setUpRobots sets up an operator that makes a ConfigMap for each ServiceAccount robot, and removes it afterwards
// unless it keeps that as long as the Pod has no second annotation. It annotates each Pod twice; the second time it
// needs the account.
func setUpRobots(mgr ctrl.Manager, keeps bool) error {
	c := mgr.GetClient()
	annotate := func(ctx context.Context, pod *corev1.Pod, key string) error {
		if pod.Annotations[key] != "" {
			return nil
		}
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, "yes")
		return c.Update(ctx, pod)
	}
	return errors.Join(
		ctrl.NewControllerManagedBy(mgr).Named("accounts").For(&corev1.ServiceAccount{}).Complete(
			reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				if req.Name != "robot" {
					return reconcile.Result{}, nil
				}
				mark, pod := configMap("of-robot"), &corev1.Pod{}
				err := c.Get(ctx, req.NamespacedName, &corev1.ServiceAccount{})
				switch {
				case err == nil:
					return reconcile.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, mark))
				case keeps && c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, pod) == nil && pod.Annotations["second"] == "":
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				return reconcile.Result{}, client.IgnoreNotFound(c.Delete(ctx, mark))
			})),
		ctrl.NewControllerManagedBy(mgr).Named("pods").For(&corev1.Pod{}).Complete(
			reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				pod := &corev1.Pod{}
				if err := c.Get(ctx, req.NamespacedName, pod); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				if err := annotate(ctx, pod, "first"); err != nil {
					return reconcile.Result{}, err
				}
				if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "robot"}, &corev1.ServiceAccount{}); err != nil {
					return reconcile.Result{}, err
				}
				return reconcile.Result{}, annotate(ctx, pod, "second")
			})),
	)
}

// TestUsersInTheSilence proves that no user acts while nobody does anything after the last step, although the
// operator calls: what it then does for the user would count as noise.
func TestUsersInTheSilence(t *testing.T) {
	a := configMap("a")
	r := Explore(t, Scenario{
		Name: "collector", Steps: []Step{Create(a), Delete(a).Gone(a)}, ExternalAPI: newShelf,
		Operator: Operator{SetUp: func(mgr ctrl.Manager, env *Env) error {
			collect := manager.RunnableFunc(func(ctx context.Context) error {
				tick := time.NewTicker(2 * time.Minute)
				defer tick.Stop()
				for {
					select {
					case <-tick.C:
						if _, err := Read(ctx, env, "list boxes", func(s *shelf) (int, error) { return s.last, nil }); err != nil {
							return err
						}
					case <-ctx.Done():
						return nil
					}
				}
			})
			marks := configMaps(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
				if cm.Data["seen"] != "" || cm.DeletionTimestamp != nil {
					return nil
				}
				cm.Data = map[string]string{"seen": "yes"}
				return c.Update(ctx, cm)
			})
			return errors.Join(mgr.Add(collect), marks(mgr, env))
		}},
		Shared: []string{"configmaps"},
	}, Only(Races))
	for _, text := range r.texts() {
		t.Error(text)
	}
	if r.Schedules[Races] == 0 {
		t.Error("no race was played")
	}
}
