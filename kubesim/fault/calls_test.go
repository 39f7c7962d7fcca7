package fault

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/report"
)

// TestBodies proves that a finding shows the body of the patch that was disturbed.
func TestBodies(t *testing.T) {
	a := configMap("a")
	r := Explore(t, Scenario{
		Name: "forgets", Steps: []Step{Create(a)}, Races: []Step{}, Shared: []string{"configmaps"},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			if cm.Labels["seen"] != "" {
				return 0, nil
			}
			if err := c.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"yes"}}}`))); err != nil {
				return 0, err
			}
			return 0, c.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"done":"yes"}}`)))
		})},
	}, Only(Crashes))
	text := strings.Join(r.texts(), "\n")
	if !strings.Contains(text, `  >>       with {"metadata":{"labels":{"seen":"yes"}}}`) {
		t.Errorf("the body of the patch is not shown:\n%s", text)
	}
}

// TestExternalStatus proves that a report shows what an external API answered over HTTP, and that such an
// answer is no error of the call: it is the operator who reads it.
func TestExternalStatus(t *testing.T) {
	e, _ := prepared(t, Scenario{
		Name: "occupied", ExternalAPI: newShelf, Steps: []Step{Create(configMap("a"))},
		Operator: Operator{SetUp: func(mgr ctrl.Manager, env *Env) error {
			vendor := &http.Client{Transport: HTTP(env, func(*shelf) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) })
			})}
			return configMaps(func(ctx context.Context, _ client.Client, _ *corev1.ConfigMap) error {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://vendor/boxes", nil)
				if err != nil {
					return err
				}
				answer, err := vendor.Do(r)
				if err != nil {
					return err
				}
				return answer.Body.Close()
			})(mgr, env)
		}},
	})
	i := slices.IndexFunc(e.reference.Run.Calls, func(c history.Call) bool { return c.What == "POST /boxes" })
	if c := e.reference.Run.Calls[i]; c.Code != http.StatusConflict || c.Err != "" {
		t.Errorf("the call has status %d and error %q; want 409 and none", c.Code, c.Err)
	}
	text := report.Text(report.Input{Test: t.Name(), Run: e.reference.Run, Violations: []history.Violation{{Invariant: "I1", Call: i}}})
	row := slices.IndexFunc(strings.Split(text, "\n"), func(line string) bool {
		return strings.Contains(line, "POST /boxes") && strings.HasSuffix(line, " 409 Conflict")
	})
	if row < 0 {
		t.Errorf("no row shows the answer of the external API:\n%s", text)
	}
}
