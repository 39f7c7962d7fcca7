package fault

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
)

// TestEarlierDifference proves that a step which fails because an earlier one ended differently does not hide that: the
// difference is what is wrong, and the error what came of it.
func TestEarlierDifference(t *testing.T) {
	child := configMap("child")
	forgetful := func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
		if cm.Name != "a" || cm.Annotations["begun"] != "" {
			return nil
		}
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "begun", "yes")
		if err := c.Update(ctx, cm); err != nil {
			return err
		}
		err := c.Create(ctx, child.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	e, w := prepared(t, Scenario{
		Name: "forgetful", Operator: Operator{SetUp: configMaps(forgetful)}, Races: []Step{},
		Steps: []Step{Create(configMap("a")), Merge(child, `{"data":{"size":"2"}}`)},
	})
	e.find(run.Job{}, e.reference)
	found := 0
	for _, j := range e.plan.Crashes() {
		j.Like = e.reference.Run
		f, ok := e.judge.Find(j, w.Play(t, j))
		if !ok {
			continue
		}
		found++
		if all := f.Violations; len(all) != 2 || !strings.Contains(all[0].Message, `at the end of step "create a"`) ||
			!strings.Contains(all[1].Message, `step 2, "change child`) || !strings.Contains(all[1].Message, "not found") {
			t.Errorf("want the difference at the end of the first step, then the error of the second:\n%s", f.Text)
		}
		if !strings.Contains(f.Text, "the state, where it differs") {
			t.Errorf("the difference is not shown:\n%s", f.Text)
		}
	}
	if found == 0 {
		t.Error("nothing was found")
	}
}
