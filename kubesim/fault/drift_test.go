package fault

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// publisher makes a ConfigMap of the same name for each Secret that has a size, and says it there. It watches the ConfigMaps, or not.
type publisher struct{ client.Client }

func publishing(watches bool) func(ctrl.Manager, *Env) error {
	return func(mgr ctrl.Manager, _ *Env) error {
		b := ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{})
		if watches {
			b = b.Owns(&corev1.ConfigMap{})
		}
		return b.Complete(publisher{mgr.GetClient()})
	}
}

func (p publisher) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := p.Get(ctx, req.NamespacedName, secret); err != nil || !secret.DeletionTimestamp.IsZero() || secret.Data["size"] == nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	child := configMap(secret.Name)
	err := p.Get(ctx, req.NamespacedName, child)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	size := string(secret.Data["size"])
	if err == nil && child.Data["size"] == size {
		return reconcile.Result{}, nil
	}
	child.Data = map[string]string{"size": size}
	if err := controllerutil.SetControllerReference(secret, child, p.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, p.Create(ctx, child)
	}
	return reconcile.Result{}, p.Update(ctx, child)
}

// publisherLife is the life of a Secret that a publisher makes a ConfigMap for.
func publisherLife(watches bool) Scenario {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, StringData: map[string]string{"size": "1"}}
	return Scenario{
		Name: "publisher", Operator: Operator{SetUp: publishing(watches)},
		Steps: []Step{Create(secret), Merge(secret, `{"stringData":{"size":"2"}}`), Delete(secret)},
	}
}

// TestDrift proves that an operator which does not watch what it makes is found, by what others delete and by what they edit, and by
// no other kind that is played by default, and that one which does is not blamed.
func TestDrift(t *testing.T) {
	for watches, want := range map[bool][]string{
		true:  nil,
		false: {"drift@1(0)+until@1", "drift@1(1)+until@1", "drift@2(0)+until@2", "drift@2(1)+until@2"},
	} {
		s := publisherLife(watches)
		r := Explore(t, s, Only(Drift), Unpruned(Alternating))
		var got []string
		for _, f := range r.Findings {
			_, token, err := schedule.Parse(f.Token)
			if err != nil || f.Violations[0].Invariant != I1 {
				t.Errorf("watches %v: %s broke %s (%v):\n%s", watches, f.Token, f.Violations[0].Invariant, err, f.Text)
			}
			got = append(got, token.String())
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" || r.Schedules[Drift] < 6 {
			t.Errorf("watches %v: of %v schedules, these broke something (-want +got):\n%s", watches, r.Schedules, diff)
		}
		if others := Explore(t, s); len(others.Findings) != 0 {
			t.Errorf("watches %v: other kinds found %v", watches, others.texts())
		}
		for _, f := range r.Findings {
			replays(t, s, f, "a drift at rest")
		}
	}
}

// TestDriftThatSaysNothing proves that nobody is blamed for what others hold, and for what cannot be edited.
func TestDriftThatSaysNothing(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, StringData: map[string]string{"size": "1"}}
	for name, change := range map[string]struct {
		step            Step
		played, nothing int
	}{
		"held":      {Merge(configMap("a"), `{"metadata":{"finalizers":["others.example.org/hold"]}}`).As("holder"), 3, 1},
		"immutable": {Merge(configMap("a"), `{"immutable":true}`), 2, 1},
	} {
		s := Scenario{
			Name: name, Operator: Operator{SetUp: publishing(true)},
			Steps: []Step{Create(secret), change.step},
		}
		r := Explore(t, s, Only(Drift))
		if len(r.Findings) != 0 || r.Schedules[Drift] != change.played || r.Pruned[TooEarly] != change.nothing {
			t.Errorf("%s: schedules %v, without %v: %v", name, r.Schedules, r.Pruned, r.texts())
		}
	}
	r := Explore(t, Scenario{Name: "nothing", Operator: Operator{SetUp: publishing(true)}, Steps: []Step{Create(configMap("b"))}}, Only(Drift))
	if !slices.Contains(r.Notes, nothingToDrift) || len(r.Schedules) != 0 {
		t.Errorf("schedules %v, notes %q", r.Schedules, r.Notes)
	}
}

// TestTokensOfDrift proves that a token which names a drift that there is not is an error, and no finding.
func TestTokensOfDrift(t *testing.T) {
	defer func() { *replayFlag = "" }()
	for token, want := range map[string]string{
		"drift@1(9)":   "drift@1(9) is none of the 2 drifts of step 1",
		"drift@7(0)":   "there is no step 7; the last one is 3",
		"drifted@2(x)": "drifted@2(x) is none of the 2 drifts of step 1",
	} {
		*replayFlag = "v1/publisher/" + token
		if r, err := explored(t, publisherLife(true), time.Minute); err == nil || !strings.Contains(err.Error(), want) || len(r.Findings) != 0 {
			t.Errorf("%s: %v, want %q; findings %v", token, err, want, r.texts())
		}
	}
}

// TestWordsOfDrift proves that a report says what somebody did to which object.
func TestWordsOfDrift(t *testing.T) {
	r := Explore(t, publisherLife(false), Only(Drift))
	all := ""
	for _, f := range r.Findings {
		all += f.Text
	}
	for _, want := range []string{"drift: kubectl deletes configmaps default/a", "drift: kubectl sets data.size of configmaps default/a to drifted"} {
		if !strings.Contains(all, want) {
			t.Errorf("no report says %q:\n%s", want, all)
		}
	}
}
