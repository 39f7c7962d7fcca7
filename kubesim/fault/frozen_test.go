package fault

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestFreezes proves that a process which stood still goes on with what it had decided, and not only with the request
// that was on its way: the operator announces what it does, and counts itself in what the API server answers.
func TestFreezes(t *testing.T) {
	s := Scenario{
		Name: "counts", Steps: []Step{Create(configMap("a"))},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			if cm.Data["count"] != "" {
				return 0, nil
			}
			announced := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"counting":"yes"}}}`))
			if err := c.Patch(ctx, cm, announced); err != nil {
				return 0, err
			}
			n, _ := strconv.Atoi(cm.Data["count"])
			cm.Data = map[string]string{"count": fmt.Sprint(n + 1)}
			return 0, c.Update(ctx, cm)
		})},
	}
	const announcing = "@1("
	for _, f := range Explore(t, s, Only(LateWrites)).Findings {
		if strings.Contains(f.Token, announcing) {
			t.Errorf("a late request that announces something breaks nothing:\n%s", f.Text)
		}
	}
	r := Explore(t, s, Only(Freezes))
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.Token, announcing) })
	if i < 0 {
		t.Fatalf("%v found nothing:\n%s", r.Schedules, strings.Join(r.texts(), "\n"))
	}
	for _, want := range []string{
		`data.count of ConfigMap default/a is "2", "1" without the disturbance`, "frozen: patch configmaps default/a",
		"the process goes on with what it was doing", "-fault.replay='v1/counts/frozen@1(",
	} {
		if text := r.Findings[i].Text; !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
}

// TestLeases proves that what an operator knows of the time may be old when a call returns, as in a process that stood still meanwhile.
func TestLeases(t *testing.T) {
	s := Scenario{
		Name: "leases", Steps: []Step{Create(configMap("a"))},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			if cm.Data["by"] != "" {
				return 0, nil
			}
			leased := time.Now()
			if err := c.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"leased":"yes"}}}`))); err != nil {
				return 0, err
			}
			cm.Data = map[string]string{"by": "its holder"}
			if time.Since(leased) > time.Minute {
				cm.Data["by"] = "another"
			}
			return 0, c.Update(ctx, cm)
		})},
	}
	r := Explore(t, s, Only(SlowCalls))
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.Token, "slow-answer@1(1h)") })
	if i < 0 {
		t.Fatalf("%v found nothing:\n%s", r.Schedules, strings.Join(r.texts(), "\n"))
	}
	if want, text := `data.by of ConfigMap default/a is "another"`, r.Findings[i].Text; !strings.Contains(text, want) {
		t.Errorf("the report does not say %q:\n%s", want, text)
	}
}
