package loop_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
)

// TestStatusOfOthers: what another controller writes to the status of a Deployment during a pass that writes metadata stays,
// whichever way the pass writes, and what the pass changes of the status arrives.
func TestStatusOfOthers(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		durable bool
		outcome loop.Outcome
	}{
		"at the end":                {outcome: loop.Done()},
		"made durable":              {durable: true, outcome: loop.Done()},
		"made durable, then status": {durable: true, outcome: loop.Done().Writing(loop.WriteStatus)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var env *looptest.Env
			others := 0
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d"}}
			wrap := func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPatch && !strings.HasSuffix(r.URL.Path, "/status") && others == 0 {
						others++
						live := d.DeepCopy()
						if err := env.Client().Get(r.Context(), client.ObjectKeyFromObject(d), live); err != nil {
							t.Error(err)
						}
						live.Status.ObservedGeneration, live.Status.UnavailableReplicas = 1, 3
						if err := env.Client().Status().Update(r.Context(), live); err != nil {
							t.Error(err)
						}
					}
					return next.RoundTrip(r)
				})
			}
			author := newCounter(func(r *loop.Run[*appsv1.Deployment]) loop.Outcome {
				r.Obj.Annotations = with(r.Obj.Annotations, "example.org/audited", "yes")
				r.Obj.Status.Replicas = 7
				if end.durable {
					if err := r.Persist(t.Context()); err != nil {
						return loop.Fail(err)
					}
				}
				return end.outcome
			})
			env = looptest.NewEnv(t, loop.New(author, loop.Options[*appsv1.Deployment]{}), looptest.Cluster{
				Objects: []client.Object{d}, Wrap: []func(http.RoundTripper) http.RoundTripper{wrap},
			})
			env.Settle()
			live := &appsv1.Deployment{}
			if err := env.Client().Get(t.Context(), client.ObjectKeyFromObject(d), live); err != nil {
				t.Fatal(err)
			}
			if s := live.Status; s.ObservedGeneration != 1 || s.UnavailableReplicas != 3 || s.Replicas != 7 {
				status, _ := json.Marshal(s)
				t.Errorf("status %s; want 1 and 3 of the other controller, and 7 of ours", status)
			}
		})
	}
}
