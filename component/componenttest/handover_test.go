package componenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestHandoverSweep: an object moves from one component to another, and the operator is killed before and
// after each write.
func TestHandoverSweep(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, bundle.CRDs)
	of := func(t *testing.T, name, value string, objects ...string) *bundle.Bundle {
		t.Helper()
		b := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, o := range objects {
			m := corev1.ConfigMap{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: o}, Data: map[string]string{"value": value},
			}
			data, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			b.Spec.Objects = append(b.Spec.Objects, runtime.RawExtension{Raw: data})
		}
		return b
	}
	s := Sweep[*bundle.Bundle]{
		Config: cfg, AddToScheme: bundle.AddToScheme,
		Renderer: component.RenderFunc[*bundle.Bundle](func(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
			objects, err := r.Component.Render()
			return component.Objects(objects...), err
		}),
		Options: component.Options[*bundle.Bundle]{
			Name: "move.op.test", Kinds: []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")},
			// Longer than a restart takes: what is killed first is the new component's record, too.
			HandoverGrace: 10 * time.Second,
			Loop:          loop.Options[*bundle.Bundle]{Retry: loop.Retry{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond}},
		},
	}
	play := func(t *testing.T, at cut) []string {
		t.Helper()
		admin := testenv.Client(t, cfg, bundle.AddToScheme)
		namespace := testenv.Namespace(t, cfg)
		runOf := func(first, second *bundle.Bundle) *run[*bundle.Bundle] {
			r := &run[*bundle.Bundle]{Sweep: s, t: t, ctx: context.WithoutCancel(t.Context()), admin: admin, namespace: namespace}
			r.Versions = []*bundle.Bundle{first, second}
			r.begin()
			return r
		}
		a := runOf(of(t, "a", "a", "one", "two", "moved"), of(t, "a", "a", "one", "two"))
		b := runOf(of(t, "b", "b", "own"), of(t, "b", "b", "own", "moved"))
		a.beside = b
		first := newLine(cut{})
		stop, err := a.start(first)
		if err != nil {
			t.Fatal(err)
		}
		a.bring(0, a.Versions[0])
		b.bring(0, b.Versions[0])
		moved := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "moved"}}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(moved), moved); err != nil {
			t.Fatal(err)
		}
		stop()
		a.update(a.Versions[1])
		b.update(b.Versions[1])
		second := newLine(at)
		a.supervise(second)
		b.ready(1)
		a.ready(1)
		now := testenv.Wait(t, admin, moved.DeepCopy(), "it has the values of b", func(m *corev1.ConfigMap) bool { return m.Data["value"] == "b" })
		if now.UID != moved.UID {
			t.Errorf("it was deleted: its UID was %s and is %s; killed at %v", moved.UID, now.UID, second.sent())
		}
		b.remove()
		a.remove()
		a.end()
		b.end()
		return second.sent()
	}
	quiet := play(t, cut{})
	t.Logf("undisturbed: %d writes: %q", len(quiet), quiet)
	t.Run("B-12 a sweep of a handover", func(t *testing.T) {
		for write := 1; write <= len(quiet)-4; write++ { // those at the end are of the deletion
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("killed at write %d, after it %v", write, after), func(t *testing.T) {
					t.Parallel()
					play(t, cut{write: write, after: after})
				})
			}
		}
	})
}
