package fault

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/judge"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/report"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// TestForgedTokens proves that a token which names no way to forge a status is refused, and that
// an operator without conditions has none to forge.
func TestForgedTokens(t *testing.T) {
	e, w := prepared(t, toyLife(""))
	if jobs := e.plan.Forging(); len(jobs) > 0 {
		t.Errorf("%d ways to forge the status of ConfigMaps, which have none", len(jobs))
	}
	r := w.Play(t, run.Job{Schedule: schedule.Schedule{{Kind: schedule.Forged, At: 2, Arg: "7"}}, Like: e.reference.Run})
	if r.Err == nil || !strings.Contains(r.Err.Error(), "names none of the 0 ways") {
		t.Errorf("a token of a forgery that there is not gave %v", r.Err)
	}
	if slices.ContainsFunc(r.Run.Changes, func(c history.Change) bool { return c.By == history.Foreigner }) {
		t.Error("something was written")
	}
}

// TestForgedConditions proves that the condition is forged that the operator writes, whatever it is called: one
// of another type is not its own, and it need not remove that.
func TestForgedConditions(t *testing.T) {
	d := deployment()
	r := Explore(t, Scenario{
		Name: "synced", Steps: []Step{Create(d).Becomes(d, "Synced")}, Races: []Step{},
		Operator: Operator{SetUp: func(mgr ctrl.Manager, _ *Env) error {
			c := mgr.GetClient()
			return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				d := &appsv1.Deployment{}
				err := c.Get(ctx, req.NamespacedName, d)
				i := slices.IndexFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == "Synced" })
				if err != nil || i >= 0 && d.Status.Conditions[i].Reason == "Fine" {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				if i >= 0 {
					d.Status.Conditions = slices.Delete(d.Status.Conditions, i, i+1)
				}
				d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{
					Type: "Synced", Status: corev1.ConditionTrue, Reason: "Fine", LastUpdateTime: metav1.Now(), LastTransitionTime: metav1.Now(),
				})
				return reconcile.Result{}, c.Status().Update(ctx, d)
			}))
		}},
	}, Only(Forgeries), Unpruned())
	for _, text := range r.texts() {
		t.Error(text)
	}
	if r.Schedules[Forgeries] < 3 || slices.Contains(r.Notes, nothingToForge) {
		t.Errorf("%d statuses were forged, want each of the three ways; notes: %q", r.Schedules[Forgeries], r.Notes)
	}
}

func deployment() *appsv1.Deployment {
	pods := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: pods.Labels}, Template: pods,
	}}
}

// TestForgedHistory proves that a condition which is False because it was True once may be missing after a user has removed the
// status: nobody can know it any more.
func TestForgedHistory(t *testing.T) {
	d := deployment()
	d.Spec.Paused = true
	r := Explore(t, Scenario{
		Name: "history", Steps: []Step{Create(d).Becomes(d, "Synced"), Merge(d, `{"spec":{"paused":false}}`)}, Races: []Step{},
		Operator: Operator{SetUp: func(mgr ctrl.Manager, _ *Env) error {
			c := mgr.GetClient()
			return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				d := &appsv1.Deployment{}
				if err := c.Get(ctx, req.NamespacedName, d); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				before := d.DeepCopy()
				was := slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == "Suspended" })
				d.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Synced", Status: corev1.ConditionTrue, Reason: "Fine"}}
				if d.Spec.Paused {
					d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{Type: "Suspended", Status: corev1.ConditionTrue, Reason: "Asked"})
				} else if was {
					d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{Type: "Suspended", Status: corev1.ConditionFalse, Reason: "Resumed"})
				}
				if equality.Semantic.DeepEqual(before.Status, d.Status) {
					return reconcile.Result{}, nil
				}
				return reconcile.Result{}, c.Status().Update(ctx, d)
			}))
		}},
	}, Only(Forgeries), Unpruned(Alternating))
	for _, f := range r.Findings {
		t.Errorf("a condition that is False was missed:\n%s", f.Text)
	}
	if r.Schedules[Forgeries] < 3 {
		t.Errorf("%d statuses were forged, want each of the three ways", r.Schedules[Forgeries])
	}
}

// TestForgedSaid proves that a report says what a forgery writes, and that it is not grouped with what others disturb.
func TestForgedSaid(t *testing.T) {
	text := map[string]string{}
	for _, kind := range []string{schedule.Forged, schedule.Race} {
		f := judge.Finding{Violations: []history.Violation{{Invariant: "I1", Subjects: []string{"a"}}}, Job: run.Job{Schedule: schedule.Schedule{{Kind: kind, At: 1}}}}
		text[kind] = f.Group()
	}
	if text[schedule.Forged] == text[schedule.Race] {
		t.Errorf("a forgery and a race are both of group %q", text[schedule.Race])
	}
	said := report.Calls(&history.Run{
		Calls:  []history.Call{{Verb: "update", Resource: "items", Name: "a", Write: true, Pass: history.Nobody}},
		Faults: []history.Fault{{Kind: schedule.Forged, At: "a user writes Ready=False into a"}},
	})
	if want := "forged: just before, a user writes Ready=False into a"; !strings.Contains(said, want) {
		t.Errorf("the calls do not say %q:\n%s", want, said)
	}
}
