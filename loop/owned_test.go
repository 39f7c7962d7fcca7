package loop_test

import (
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/trigger"
)

// TestOwned: an object is woken by what it controls, by what its author says it owns, and by nothing else. Code of the
// author that panics loses no event.
func TestOwned(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	owned := trigger.Owned[*probe.Probe]{
		Of: &corev1.Pod{},
		Owners: func(obj client.Object) []types.NamespacedName {
			if broken.Load() {
				panic("no owners")
			}
			if name := obj.GetAnnotations()["owner"]; name != "" {
				return []types.NamespacedName{{Namespace: obj.GetNamespace(), Name: name}}
			}
			return nil
		},
		News: func(_, after client.Object) bool {
			if broken.Load() {
				panic("no news")
			}
			return after == nil || after.GetLabels()["boring"] == ""
		},
	}
	a := newAuthor(nil)
	w := newControllerTest(t, a, options{MaxInterval: -1, Sources: []trigger.Source[*probe.Probe]{owned}})
	uids := map[string]types.UID{}
	for _, name := range []string{"a", "b"} {
		w.create(name)
		uids[name] = w.await(name, "to be Ready", ready).UID
		w.next(a)
	}
	pod := func(name, kind, owner, annotated string) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Annotations: map[string]string{"owner": annotated}},
			Spec:       corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.org/never"}}, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: probe.GroupVersion.String(), Kind: kind, Name: owner, UID: uids[owner], Controller: new(true)}}
		}
		return p
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	step := func() { got = append(got, w.next(a).Name) }

	ofA, ofB := pod("of-a", "Probe", "a", ""), pod("of-b", "Probe", "", "b")
	do(w.admin.Create(t.Context(), ofA))
	step()
	do(w.admin.Create(t.Context(), pod("of-another-kind", "Prober", "b", "")))
	do(w.admin.Create(t.Context(), pod("nobodys", "", "", "")))
	ofB.Labels = map[string]string{"boring": "yes"}
	do(w.admin.Create(t.Context(), ofB))
	patch := func(p *corev1.Pod, body string) {
		t.Helper()
		do(w.admin.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(body))))
	}
	patch(ofA, `{"metadata":{"labels":{"boring":"yes"}}}`)
	patch(ofB, `{"metadata":{"labels":{"boring":null}}}`)
	step()
	broken.Store(true)
	patch(ofB, `{"metadata":{"labels":{"x":"y"}}}`) // nobody knows whose it is
	patch(ofA, `{"metadata":{"ownerReferences":null}}`)
	step() // it was a's
	broken.Store(false)
	do(w.admin.Delete(t.Context(), ofB, client.GracePeriodSeconds(0)))
	step()
	if diff := cmp.Diff([]string{"a", "b", "a", "b"}, got); diff != "" {
		t.Errorf("passes (-want +got):\n%s", diff)
	}
	if err := (trigger.Owned[*probe.Probe]{}).Check(); err == nil {
		t.Error("an Owned without Of is accepted")
	}
}
