package external_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trigger"
)

// announced are things about which a ConfigMap tells the others.
type announced struct {
	named

	fails *atomic.Bool
}

func (a announced) Finish(ctx context.Context, r external.FinishRequest[*thing.Thing, item]) (external.FinishResponse, error) {
	if a.fails.Load() {
		return external.FinishResponse{}, errors.New("the registry is full")
	}
	var m corev1.ConfigMap
	key := client.ObjectKeyFromObject(r.Object)
	want := map[string]string{"host": r.Have.Host, "size": strings.Repeat("x", r.Have.Size)}
	err := r.Cluster.Get(ctx, key, &m)
	switch {
	case apierrors.IsNotFound(err):
		m.Namespace, m.Name, m.Data = key.Namespace, key.Name, want
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(r.Object, thing.GroupVersion.WithKind("Thing"))}
		err = r.Cluster.Create(ctx, &m)
	case err == nil && m.Data["size"] != want["size"]:
		m.Data = want
		err = r.Cluster.Update(ctx, &m)
	}
	return external.FinishResponse{}, err
}

// announcing starts an operator of announced things, which their ConfigMaps wake.
func announcing(t *testing.T) (*operatorTest, *atomic.Bool) {
	t.Helper()
	fails := &atomic.Bool{}
	w := newOperatorTest(t, announced{fails: fails}, func(o *options) {
		o.Loop.Sources = append(o.Loop.Sources, trigger.Reference[*thing.Thing]{
			To: &corev1.ConfigMap{},
			Names: func(o *thing.Thing) []types.NamespacedName {
				return []types.NamespacedName{client.ObjectKeyFromObject(o)}
			},
		})
		o.Loop.Needs = []loop.Need{{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Verbs: []string{"create", "update"}}}
	})
	return w, fails
}

// announcement waits for the ConfigMap of the object "a".
func (w *operatorTest) announcement(why string, ok func(*corev1.ConfigMap) bool) *corev1.ConfigMap {
	w.t.Helper()
	return testenv.Wait(w.t, w.admin, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}, why, ok)
}

func TestFinish(t *testing.T) {
	t.Parallel()
	t.Run("E0-32 the hook runs, its error is Failed and retried", func(t *testing.T) {
		t.Parallel()
		w, fails := announcing(t)
		fails.Store(true)
		w.create()
		got := w.failing("FinishFailed")
		if !strings.Contains(got.Status.Message, `cannot finish thing "a": the registry is full; retrying`) || is(got, "Ready", "True") {
			t.Errorf("message %q, conditions %+v", got.Status.Message, got.Status.Conditions)
		}
		fails.Store(false)
		w.ready()
		w.announcement("the host", func(m *corev1.ConfigMap) bool { return m.Data["host"] == "a.example.org" })
	})
	t.Run("E1-60 for each spec, again if its output disappears, and not in the way of a deletion", func(t *testing.T) {
		t.Parallel()
		w, fails := announcing(t)
		w.create()
		w.ready()
		w.announcement("size 1", func(m *corev1.ConfigMap) bool { return m.Data["size"] == "x" })
		w.resize(3)
		w.ready()
		before := w.announcement("size 3", func(m *corev1.ConfigMap) bool { return m.Data["size"] == "xxx" })
		history := w.follow("a")
		if err := w.admin.Delete(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		w.announcement("it again", func(m *corev1.ConfigMap) bool { return m.UID != before.UID && m.Data["size"] == "xxx" })
		fails.Store(true)
		w.poke("1")
		for _, o := range history.until("FinishFailed", func(o *thing.Thing) bool { return condition(o, "Failed").Reason == "FinishFailed" }) {
			if !is(o, "Ready", "True") {
				t.Errorf("what was finished before is not Ready: %+v", o.Status.Conditions)
			}
		}
		w.delete()
		w.gone()
		if n := w.cloud.count("DELETE"); n != 1 {
			t.Errorf("%d deletes", n)
		}
	})
}
