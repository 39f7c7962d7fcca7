package component_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trimtab-dev/trimtab/internal/product"
)

// TestLogging: generators and hooks run in goroutines of their own, and log as the component that they work for.
func TestLogging(t *testing.T) {
	t.Parallel()
	t.Run("002-64 lines of a generator and of a hook have the seven keys", func(t *testing.T) {
		t.Parallel()
		s := newShop(t)
		var mu sync.Mutex
		lines := map[string]map[string]any{} // the first with each message
		s.manager = func(o *ctrl.Options) {
			o.Logger = funcr.NewJSON(func(text string) {
				line := map[string]any{}
				if err := json.Unmarshal([]byte(text), &line); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if msg, _ := line["msg"].(string); lines[msg] == nil {
					lines[msg] = line
				}
			}, funcr.Options{})
		}
		s.generator.do = func(ctx context.Context, _ call) ([]client.Object, error) {
			logf.FromContext(ctx).Info("in the generator")
			return []client.Object{configMap("one", "1")}, nil
		}
		s.hooks = func(r *reconciler) {
			r.WithPreReconcileHook(func(ctx context.Context, _ client.Client, _ *product.Product) error {
				logf.FromContext(ctx).Info("in a hook")
				return nil
			})
		}
		s.start()
		created := s.create(product.Spec{})
		s.is("Ready", "Ready")
		want := map[string]any{
			"apiVersion": product.GroupVersion.String(), "kind": "Product", "name": "a", "namespace": s.namespace,
			"generation": float64(1), "uid": string(created.UID),
		}
		mu.Lock()
		defer mu.Unlock()
		for _, msg := range []string{"in the generator", "in a hook"} {
			got := map[string]any{}
			for key, value := range lines[msg] {
				if name, is := strings.CutPrefix(key, "resource."); is {
					got[name] = value
				}
			}
			if version, _ := got["resourceVersion"].(string); version == "" {
				t.Errorf("%s: no version among %v", msg, slices.Sorted(maps.Keys(lines[msg])))
			}
			delete(got, "resourceVersion") // of any pass
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("keys %s (-want +got):\n%s", msg, diff)
			}
		}
	})
}
