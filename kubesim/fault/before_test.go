package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
)

// configured is an operator that does not start without the ConfigMap "config".
func configured(mgr ctrl.Manager, env *Env) error {
	var cm corev1.ConfigMap
	if err := mgr.GetAPIReader().Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "config"}, &cm); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	return configMaps(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
		if cm.Name != "a" || cm.Data["seen"] != "" {
			return nil
		}
		cm.Data = map[string]string{"seen": "yes"}
		return c.Update(ctx, cm)
	})(mgr, env)
}

// TestBefore proves that an operator plays that needs something in the cluster in order to start, and that
// nobody takes it away.
func TestBefore(t *testing.T) {
	s := Scenario{
		Name: "before", Operator: Operator{SetUp: configured}, Shared: []string{"configmaps"},
		Before: []Step{Create(configMap("config"))},
		Steps:  []Step{Create(configMap("a"))},
	}
	r, err := explored(t, s, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Schedules) == 0 || len(r.Findings) != 0 {
		t.Errorf("schedules %v, findings %v", r.Schedules, r.Findings)
	}

	s.Before = nil
	if _, err := explored(t, s, time.Minute); err == nil || !strings.Contains(err.Error(), "read the configuration: ") {
		t.Errorf("without its ConfigMap, the operator started: %v", err)
	}
	s.Before = []Step{Create(configMap("config")), Wait(time.Minute)}
	if _, err := explored(t, s, time.Minute); !errors.As(err, new(sandbox.MisuseError)) {
		t.Errorf("a wait before the start gave %v", err)
	}
	s.Before = []Step{{Name: "fail"}}
	s.Before[0].Do = func(context.Context, *World) error { return errors.New("no such thing") }
	if _, err := explored(t, s, time.Minute); err == nil || !strings.Contains(err.Error(), `"fail": no such thing`) {
		t.Errorf("a step that fails before the start gave %v", err)
	}
}
