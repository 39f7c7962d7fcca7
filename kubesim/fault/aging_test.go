package fault

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ticket is an operator that makes a Secret for ten minutes, and something else, which it tries again after
// twelve minutes if that fails.
type ticket struct {
	client.Client
	forgets bool // when it made the Secret
	made    time.Time
}

// valid is how long a Secret exists.
const valid = 10 * time.Minute

func (o *ticket) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cm := &corev1.ConfigMap{}
	if err := o.Get(ctx, req.NamespacedName, cm); err != nil || cm.Name != "a" {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	issued := cm.Annotations["issued"] != ""
	left, err := o.issue(ctx, cm)
	if err != nil || !issued {
		return reconcile.Result{}, err // in the latter case the annotation's event comes
	}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: cm.Namespace, Labels: map[string]string{"of": cm.Name}}}
	err = o.Get(ctx, client.ObjectKeyFromObject(other), other)
	if apierrors.IsNotFound(err) {
		err = o.Create(ctx, other)
	}
	if err != nil {
		return reconcile.Result{RequeueAfter: valid + 2*time.Minute}, nil //nolint:nilerr // it is tried again, but late
	}
	return reconcile.Result{RequeueAfter: left}, nil
}

// issue makes the Secret, or deletes it when its time is over, and returns how much time is left.
func (o *ticket) issue(ctx context.Context, cm *corev1.ConfigMap) (time.Duration, error) {
	s := &corev1.Secret{}
	err := o.Get(ctx, client.ObjectKeyFromObject(cm), s)
	switch {
	case apierrors.IsNotFound(err) && cm.Annotations["issued"] != "":
		return 0, nil
	case apierrors.IsNotFound(err):
		s.ObjectMeta = metav1.ObjectMeta{Name: cm.Name, Namespace: cm.Namespace, Labels: map[string]string{"of": cm.Name}}
		if err := o.Create(ctx, s); err != nil {
			return 0, err
		}
		o.made = s.CreationTimestamp.Time
	case err != nil:
		return 0, err
	}
	if cm.Annotations["issued"] == "" {
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "issued", "yes")
		return valid, o.Update(ctx, cm)
	}
	made := s.CreationTimestamp.Time
	if o.forgets {
		made = o.made
	}
	if left := time.Until(made.Add(valid)); left > 0 {
		return left, nil
	}
	return 0, client.IgnoreNotFound(o.Delete(ctx, s, client.Preconditions{UID: &s.UID}))
}

// TestAging proves that what the undisturbed run itself comes to with time is no difference if a run takes that
// long, and that it is one if it comes too early.
func TestAging(t *testing.T) {
	explore := func(forgets bool, options ...Option) Report {
		a := configMap("a")
		return Explore(t, Scenario{
			Name: "ticket", Races: []Step{}, Shared: []string{"configmaps"}, Patience: 40 * time.Minute,
			Operator: Operator{SetUp: func(mgr ctrl.Manager, _ *Env) error {
				return ctrl.NewControllerManagedBy(mgr).Named("tickets").For(&corev1.ConfigMap{}).Complete(&ticket{Client: mgr.GetClient(), forgets: forgets})
			}},
			Steps: []Step{
				Create(a).Expecting(func(ctx context.Context, w *World) error {
					return w.Client.Get(ctx, client.ObjectKeyFromObject(a), &corev1.Secret{})
				}),
				Merge(a, `{"data":{"x":"y"}}`),
			},
		}, append(options, Only(Crashes, Faults), Waive(I4, "nothing is deleted here"))...)
	}
	r := explore(false)
	for _, text := range r.texts() {
		t.Error(text)
	}
	if r.Schedules[Faults] == 0 {
		t.Error("no faults were played")
	}
	early := explore(true, Waive(I5, "it deletes the Secret after a restart"))
	want := `Secret default/a is missing, at the end of step "create a"`
	if !slices.ContainsFunc(early.Findings, func(f Finding) bool { return strings.HasPrefix(f.Violations[0].Message, want) }) {
		t.Errorf("got %d findings, want one that says %q\n%s", len(early.Findings), want, strings.Join(early.texts(), "\n"))
	}
}
