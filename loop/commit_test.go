package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
	"github.com/trimtab-dev/trimtab/testenv"
)

func condition(p *probe.Probe, t string) *metav1.Condition {
	return meta.FindStatusCondition(p.Status.Conditions, t)
}

// gone waits until the Probe a is no more.
func (w *controllerTest) gone() {
	w.t.Helper()
	p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}
	testenv.Gone(w.t, w.admin, p, "to be gone")
}

// onlyFinalizers tells whether a merge patch touches metadata.finalizers and the
// precondition alone.
func onlyFinalizers(body []byte) bool {
	var patch map[string]map[string]any
	if err := json.Unmarshal(body, &patch); err != nil || len(patch) != 1 {
		return false
	}
	for field := range patch["metadata"] {
		if field != "finalizers" && field != "resourceVersion" {
			return false
		}
	}
	return true
}

// TestCommit proves what a pass writes.
func TestCommit(t *testing.T) {
	t.Parallel()
	t.Run("003-15 a converged object is never written again", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(context.Context, *run) loop.Outcome { return loop.After(10 * time.Millisecond) })
		w := newControllerTest(t, a, options{})
		w.create("a")
		first := w.await("a", "to be Ready", ready)
		for range 100 {
			w.next(a)
		}
		if got := w.get("a"); got.ResourceVersion != first.ResourceVersion {
			t.Errorf("after 100 passes the version is %s, was %s", got.ResourceVersion, first.ResourceVersion)
		}
		if diff := cmp.Diff([]string{"apply status"}, w.writes()); diff != "" {
			t.Errorf("writes of all passes (-want +got):\n%s", diff)
		}
	})
	t.Run("002-22 what belongs to the object is written first, then its status, and neither is lost", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			r.Obj.Status.Note = "seen"
			r.Obj.Labels = map[string]string{"seen": "yes"}
			return loop.Done()
		})
		w := newControllerTest(t, a, options{})
		w.create("a")
		w.next(a)
		got := w.await("a", "to be Ready", ready)
		if diff := cmp.Diff([]string{"patch", "apply status"}, w.writes()); diff != "" {
			t.Errorf("metadata first, then status (-want +got):\n%s", diff)
		}
		if got.Status.Note != "seen" || got.Labels["seen"] != "yes" {
			t.Errorf("both must arrive: note %q, labels %v", got.Status.Note, got.Labels)
		}
		if got.Generation != 1 {
			t.Errorf("generation is %d, want 1", got.Generation)
		}
	})
	t.Run("003-12 a changed spec is a programming error and nothing of the pass is written", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			r.Obj.Spec.Size = 99
			r.Obj.Labels = map[string]string{"seen": "yes"}
			return loop.Done()
		})
		w := newControllerTest(t, a, options{})
		w.create("a")
		got := w.await("a", "to be Stalled", func(p *probe.Probe) bool { return condition(p, "Stalled") != nil })
		if got.Spec.Size != 0 || got.Labels != nil {
			t.Errorf("the server has size %d, labels %v; want neither", got.Spec.Size, got.Labels)
		}
		for _, kind := range []string{"Ready", "Stalled"} {
			if m := condition(got, kind).Message; !strings.Contains(m, "this is a bug in the controller, which must change a copy of it (DeepCopy), or call Run.CompleteSpec") {
				t.Errorf("%s does not say whose mistake it is and what to do: %s", kind, m)
			}
		}
		w.settled(a)
		if diff := cmp.Diff([]string{"apply status"}, w.writes()); diff != "" || a.count("reconcile") != 1 {
			t.Errorf("%d calls; writes, which are that of the mistake alone (-want +got):\n%s", a.count("reconcile"), diff)
		}
	})
	t.Run("002-24 a conflict overwrites nothing and is no attempt", func(t *testing.T) {
		t.Parallel()
		var w *controllerTest
		first := true
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			if first {
				first = false
				w.patch("a", `{"metadata":{"labels":{"theirs":"yes"}}}`) //nolint:contextcheck // it takes the context of the test
			}
			r.Obj.SetLabels(with(r.Obj.Labels, "ours", "yes"))
			return loop.Done()
		})
		w = newControllerTest(t, a, options{})
		w.create("a")
		got := w.await("a", "to carry both labels", func(p *probe.Probe) bool { return p.Labels["ours"] == "yes" && p.Labels["theirs"] == "yes" && ready(p) })
		if got.Status.ObservedGeneration != 1 {
			t.Errorf("observedGeneration %d", got.Status.ObservedGeneration)
		}
		w.next(a)
		if second := w.next(a); second.Attempt != 0 {
			t.Errorf("the pass after the conflict is attempt %d, want 0", second.Attempt)
		}
		refused := w.requests.Select(func(r testenv.Request) bool { return r.Code == http.StatusConflict })
		if len(refused) != 1 {
			t.Errorf("refused with 409: %v, want one request", refused)
		}
	})
	t.Run("002-30 002-31 generations follow success", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			if r.Obj.Spec.Size == 2 {
				return loop.Fail(errBroken)
			}
			return loop.Done()
		})
		w := newControllerTest(t, a, options{Retry: linear(1)})
		w.create("a")
		got := w.await("a", "to be Ready", ready)
		if got.Status.ObservedGeneration != 1 || got.Status.AppliedGeneration != 1 {
			t.Errorf("generations %d, %d, want 1, 1", got.Status.ObservedGeneration, got.Status.AppliedGeneration)
		}
		w.resize(2)
		got = w.await("a", "to have failed", func(p *probe.Probe) bool { return p.Status.State == "Failed" })
		if got.Status.ObservedGeneration != 2 || got.Status.AppliedGeneration != 1 {
			t.Errorf("after a failure: observed %d, applied %d, want 2, 1", got.Status.ObservedGeneration, got.Status.AppliedGeneration)
		}
	})
	t.Run("002-33 a failure never counts as applied, nor does giving up", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			switch r.Obj.Spec.Size {
			case 2:
				return loop.Fail(errBroken)
			case 3:
				return loop.Terminal("TooLarge", errBroken)
			}
			return loop.Done()
		})
		w := newControllerTest(t, a, options{Retry: linear(1)})
		w.create("a")
		w.await("a", "to be Ready", ready)
		for _, size := range []int{2, 3} {
			generation := w.resize(size).Generation
			got := w.await("a", "to be Stalled", func(p *probe.Probe) bool {
				return condition(p, "Stalled") != nil && p.Status.ObservedGeneration == generation
			})
			if got.Status.AppliedGeneration != 1 {
				t.Errorf("size %d: applied generation %d, want 1", size, got.Status.AppliedGeneration)
			}
		}
		w.resize(1)
		w.await("a", "to be applied again", func(p *probe.Probe) bool { return p.Status.AppliedGeneration == 4 })
	})
	t.Run("what was applied is not what somebody writes", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			if r.Obj.Spec.Size == 2 {
				return loop.Terminal("TooLarge", errBroken)
			}
			return loop.Done()
		})
		w := newControllerTest(t, a, options{})
		w.create("a")
		w.await("a", "to be Ready", ready)
		w.resize(2)
		w.await("a", "to be Stalled", func(p *probe.Probe) bool { return condition(p, "Stalled") != nil })
		for token, forged := range map[string]string{"gone": `{"status":null}`, "ahead": `{"status":{"appliedGeneration":2}}`} {
			obj := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}
			if err := w.admin.Status().Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(forged))); err != nil {
				t.Fatal(err)
			}
			w.patch("a", fmt.Sprintf(`{"metadata":{"annotations":{"trimtab.dev/reconcile":%q}}}`, token))
			got := w.await("a", "a look", func(p *probe.Probe) bool { return p.Status.HandledReconcile == token })
			if got.Status.AppliedGeneration != 1 {
				t.Errorf("after %s: applied generation %d, want 1", forged, got.Status.AppliedGeneration)
			}
		}
	})
	t.Run("002-45 a conflict of the status is repeated without an event", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(nil)
		w := newControllerTest(t, a, options{}, looptest.Inject(looptest.Fault{On: "apply probes/status", Nth: 1, Code: http.StatusConflict}).Wrap)
		w.create("a")
		w.await("a", "to be Ready", ready)
		w.next(a)
		if second := w.next(a); second.Attempt != 0 {
			t.Errorf("the pass after the conflict is attempt %d, want 0", second.Attempt)
		}
		w.quiet(a, time.Second)
	})
	t.Run("foreign conditions stay, ours go when they no longer hold", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			if r.Obj.Spec.Size == 1 {
				return loop.Terminal("TooSmall", fmt.Errorf("size 1 is too small"))
			}
			return loop.Done()
		})
		w := newControllerTest(t, a, options{})
		w.create("a", func(p *probe.Probe) { p.Spec.Size = 1 })
		w.await("a", "to be Stalled", func(p *probe.Probe) bool { return condition(p, "Stalled") != nil })
		w.addCondition(metav1.Condition{Type: "Theirs", Status: "True", Reason: "Because", LastTransitionTime: metav1.Now()})
		w.resize(2)
		got := w.await("a", "to be Ready", ready)
		var types []string
		for _, c := range got.Status.Conditions {
			types = append(types, c.Type)
		}
		if diff := cmp.Diff([]string{"Ready", "Theirs"}, types, sorted); diff != "" {
			t.Errorf("E0-15 conditions (-want +got):\n%s", diff)
		}
	})
	t.Run("the author's panic and deadline are failures", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(ctx context.Context, r *run) loop.Outcome {
			if r.Obj.Name == "panics" {
				panic("boom")
			}
			<-ctx.Done()
			return loop.Fail(fmt.Errorf("wait for the pump: %w", ctx.Err()))
		})
		w := newControllerTest(t, a, options{Retry: linear(-1), Deadline: 200 * time.Millisecond})
		for name, reason := range map[string]string{"panics": "Panicked", "hangs": "Timeout"} {
			w.create(name)
			got := w.await(name, "to be Stalled", func(p *probe.Probe) bool { return condition(p, "Stalled") != nil })
			if r := condition(got, "Ready").Reason; r != reason {
				t.Errorf("%s: reason %s, want %s", name, r, reason)
			}
		}
	})
}

// addCondition writes a condition as another controller would.
func (w *controllerTest) addCondition(c metav1.Condition) {
	w.t.Helper()
	if c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = metav1.Now()
	}
	body, err := json.Marshal([]map[string]any{{"op": "add", "path": "/status/conditions/-", "value": c}})
	if err != nil {
		w.t.Fatal(err)
	}
	patch := client.RawPatch(types.JSONPatchType, body) // which does not depend on the version, as the loop writes meanwhile
	if err := w.admin.Status().Patch(w.t.Context(), w.get("a"), patch, client.FieldOwner("theirs")); err != nil {
		w.t.Fatal(err)
	}
}

// TestNews proves which changes of the object itself wake the loop.
func TestNews(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why    string
		change func(w *controllerTest)
		mode   loop.GenerationMode
		calls  int
	}{
		"002-27 a label of somebody else is no news": {
			why: "generation aware", change: func(w *controllerTest) { w.patch("a", `{"metadata":{"labels":{"x":"y"}}}`) },
		},
		"002-27 an annotation of somebody else is no news": {
			why: "generation aware", change: func(w *controllerTest) { w.patch("a", `{"metadata":{"annotations":{"x":"y"}}}`) },
		},
		"002-27 a status that somebody wrote is no news": {
			why: "and tampering changes nothing that the operator does",
			change: func(w *controllerTest) {
				w.addCondition(metav1.Condition{Type: "Theirs", Status: "True", Reason: "Because"})
			},
		},
		"002-27 a new spec is": {
			why: "generation aware", change: func(w *controllerTest) { w.resize(5) }, calls: 1,
		},
		"002-36 switched off, a foreign status write is news": {
			why: "EveryChange", mode: loop.EveryChange, calls: 1,
			change: func(w *controllerTest) {
				w.addCondition(metav1.Condition{Type: "Theirs", Status: "True", Reason: "Because"})
			},
		},
		"an annotation that the author declared is": {
			why: "WakeOn", change: func(w *controllerTest) { w.patch("a", `{"metadata":{"annotations":{"example.org/wake":"now"}}}`) }, calls: 1,
		},
		"a token asks for a pass and is echoed": {
			why: "trimtab.dev/reconcile", calls: 1,
			change: func(w *controllerTest) { w.patch("a", `{"metadata":{"annotations":{"trimtab.dev/reconcile":"t1"}}}`) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAuthor(nil)
			w := newControllerTest(t, a, options{Generation: tc.mode, WakeOn: []string{"example.org/wake"}})
			w.create("a")
			w.next(a)
			w.await("a", "to be Ready", ready)
			if tc.mode == loop.EveryChange {
				w.next(a) // its own status write is such a change
			}
			quiet := w.listen(a)
			tc.change(w)
			if tc.calls > 0 {
				for range tc.calls {
					w.next(a)
				}
				quiet = w.listen(a)
			}
			quiet(time.Second)
			if strings.Contains(name, "token") && w.get("a").Status.HandledReconcile != "t1" {
				t.Errorf("%s: the token is not echoed", tc.why)
			}
		})
	}
}

// settled asserts that nothing more happens.
func (w *controllerTest) settled(a *author) {
	w.t.Helper()
	w.quiet(a, time.Second)
}

func with(labels map[string]string, key, value string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, labels)
	out[key] = value
	return out
}
