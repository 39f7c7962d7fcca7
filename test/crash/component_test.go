package crash

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestComponentAtAnyInstant kills the operator of a component with three waves at random times while the
// component is installed, updated and deleted: in 200 runs with TRIMTAB_DEEP=1, in 40 without.
func TestComponentAtAnyInstant(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, bundle.CRDs)
	const name = "instant.op.test"
	in := func(o, value, wave string) client.Object {
		return &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"value": value},
			ObjectMeta: metav1.ObjectMeta{Name: o, Annotations: map[string]string{name + "/apply-order": wave, name + "/delete-order": wave}},
		}
	}
	story := componenttest.Sweep[*bundle.Bundle]{
		Config: cfg, AddToScheme: bundle.AddToScheme,
		Renderer: component.RenderFunc[*bundle.Bundle](func(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
			objects, err := r.Component.Render()
			return component.Objects(objects...), err
		}),
		Options: component.Options[*bundle.Bundle]{Name: name, Loop: loop.Options[*bundle.Bundle]{
			Retry: loop.Retry{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond},
		}},
		Versions: []*bundle.Bundle{
			bundleOf(t, in("a", "1", "1"), in("b", "1", "1"), in("c", "1", "2"), in("d", "1", "3")),
			bundleOf(t, in("a", "1", "1"), in("c", "2", "2"), in("e", "1", "2"), in("f", "1", "3")),
		},
	}
	runs := 40
	switch {
	case deep():
		runs = 200
	case testing.Short():
		runs = 8
	}
	t.Run("004-13 killed at any instant", func(t *testing.T) { componenttest.KillAtRandom(t, story, runs) })
}

func bundleOf(t *testing.T, objects ...client.Object) *bundle.Bundle {
	t.Helper()
	b := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for _, o := range objects {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		b.Spec.Objects = append(b.Spec.Objects, runtime.RawExtension{Raw: data})
	}
	return b
}
