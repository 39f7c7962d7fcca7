package fault

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// TestRecoveriesOfEachKind proves that a kind which [Only] names beside [Recoveries] disturbs recoveries, and that it does not otherwise.
func TestRecoveriesOfEachKind(t *testing.T) {
	s := Scenario{
		Name: "locks", Steps: []Step{Create(configMap("a")), Merge(configMap("a"), `{"data":{"stop":"yes"}}`)},
		Operator: Operator{SetUp: func(mgr ctrl.Manager, env *Env) error {
			return does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
				env.Author("look")
				lock := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "lock-" + cm.Name, Namespace: cm.Namespace}}
				want := map[bool]string{false: "held", true: "free"}[cm.Data["stop"] == "yes"]
				if cm.Annotations["lock"] == want {
					return 0, nil
				}
				do := map[string]func() error{
					"held": func() error { return c.Create(ctx, lock) }, "free": func() error { return client.IgnoreNotFound(c.Delete(ctx, lock)) },
				}
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "locking", want)
				if err := c.Update(ctx, cm); err != nil {
					return 0, err
				}
				if err := do[want](); client.IgnoreAlreadyExists(err) != nil {
					return 0, err
				}
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "lock", want)
				return 0, c.Update(ctx, cm)
			})(mgr, env)
		}},
	}
	usual := disturbancesOfRecoveries(t, s)
	for kind, want := range map[Kind][]string{
		Contention:   {schedule.Contended},
		Replacements: {schedule.Replaced},
		Hangs:        {schedule.Hang},
		SlowCalls:    {schedule.SlowAnswer, schedule.SlowRequest},
		LateEffects:  {schedule.LateEffect},
		LateWrites:   {schedule.LateWrite},
		Freezes:      {schedule.Frozen},
		OldCaches:    {schedule.OldCache},
	} {
		more := slices.DeleteFunc(disturbancesOfRecoveries(t, s, kind), func(k string) bool { return slices.Contains(usual, k) })
		if diff := cmp.Diff(want, more); diff != "" {
			t.Errorf("recoveries with %s are also disturbed by (-want +got):\n%s", kind, diff)
		}
	}
}

// disturbancesOfRecoveries are what recoveries are disturbed by if these kinds are named as well.
func disturbancesOfRecoveries(t *testing.T, s Scenario, also ...Kind) (kinds []string) {
	t.Helper()
	var o options
	Only(append(also, Recoveries)...)(&o)
	e, err := newExploration(t, &s, o)
	if err != nil {
		t.Fatal(err)
	}
	defer quieten()()
	e.clock = e.newClock()
	defer e.teller.start()()
	if err := e.prepare(); err != nil {
		t.Fatal(err)
	}
	jobs, err := e.recovering()
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		kinds = append(kinds, j.Schedule[1].Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}
