package external_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestDependenciesAreOnlyRead: a dependency is judged by its object, which is never written, and never by its API.
func TestDependenciesAreOnlyRead(t *testing.T) {
	t.Parallel()
	t.Run("E1-06 the API of a dependency is not called for those that need it", func(t *testing.T) {
		t.Parallel()
		a := newBank(t, "east", "west")
		w := newBankTest(t, a)
		w.createAs("b", in("west"), func(o *thing.Thing) { o.Spec.Needs = "a" })
		w.pending("b", "Thing "+w.namespace+"/a: it does not exist")
		w.create(in("east"))
		w.ready()
		w.readyAs("b")
		w.resize(2)
		w.ready()
		w.change("b", func(o *thing.Thing) { o.Spec.Size = 3 })
		w.awaitAs("b", "the new size", func(o *thing.Thing) bool { return is(o, "Ready", "True") && o.Status.AppliedGeneration == o.Generation })
		w.remove("b")
		w.until(func() bool { return a.clouds["west"].get("b") == nil })
		for account, own := range map[string]string{"east": "a", "west": "b"} {
			calls := a.clouds[account].calls(true)
			if len(calls) == 0 {
				t.Errorf("no calls of %s", account)
			}
			for _, call := range calls {
				if !strings.HasSuffix(call, " "+own) {
					t.Errorf("call of %s: %s", account, call)
				}
			}
		}
	})
	t.Run("E1-07 a dependency is never written", func(t *testing.T) {
		t.Parallel()
		w := needing(t, external.Dependency{To: &corev1.ConfigMap{}, Name: "db"})
		w.create()
		w.pending("a", "db: it does not exist")
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
		w.make(c)
		w.ready()
		w.resize(2)
		w.ready()
		if err := w.admin.Delete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		w.pending("a", "db: it does not exist")
		w.delete()
		w.gone()
		for _, r := range w.requests.Select(testenv.Request.IsWrite) {
			if r.Resource == "configmaps" {
				t.Errorf("wrote %s %s: %s", r.Verb, r.Name, r.Body)
			}
		}
		if len(w.requests.Select(func(r testenv.Request) bool { return r.Resource == "configmaps" })) == 0 {
			t.Error("it was not even watched")
		}
	})
}
