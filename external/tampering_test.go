package external_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// adversary writes nonsense into status, the same with every run.
type adversary struct {
	w   *operatorTest
	rng *rand.Rand
}

func newAdversary(w *operatorTest) *adversary {
	return &adversary{w, rand.New(rand.NewPCG(7, 7))}
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// status is every condition that there is, and all other fields, at random.
func (a *adversary) status() map[string]any {
	var conditions []map[string]any
	for _, t := range []string{
		api.ConditionReady, api.ConditionReconciling, api.ConditionStalled, api.ConditionCreating, api.ConditionUpdating,
		api.ConditionDeleting, api.ConditionFailed, api.ConditionPaused, api.ConditionPolicyInvalid, api.ConditionDependenciesReady,
	} {
		conditions = append(conditions, map[string]any{
			"type": t, "status": pick(a.rng, "True", "False", "Unknown"), "reason": pick(a.rng, "Available", "Paused", "CreateInvalid", "X"),
			"message": pick(a.rng, "", "nonsense"), "observedGeneration": a.rng.IntN(5), "lastTransitionTime": "2020-01-01T00:00:00Z",
		})
	}
	states := []decide.State{
		"", "Nonsense", decide.StatePending, decide.StateCreating, decide.StateUpdating, decide.StateVerifying, decide.StateCompleting,
		decide.StateSucceeded, decide.StateRecreating, decide.StateFailed, decide.StateTerminating,
	}
	return map[string]any{
		"state": pick(a.rng, states...), "conditions": conditions,
		"observedGeneration": a.rng.IntN(5), "appliedGeneration": a.rng.IntN(5),
		"external": map[string]any{"id": "nonsense", "incarnation": a.rng.IntN(5) + 1},
	}
}

// strike writes once. An object that is not there is left in peace.
func (a *adversary) strike(ctx context.Context, name string) error {
	body, err := json.Marshal(map[string]any{"status": a.status()})
	if err != nil {
		return err
	}
	obj := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: a.w.namespace, Name: name}}
	err = a.w.admin.Status().Patch(ctx, obj, client.RawPatch(types.MergePatchType, body))
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the adversary was told to stop
	}
	return client.IgnoreNotFound(err)
}

// follow strikes before each write of the operator to the object and before each call of the cloud. So
// every write finds a status and a version that the operator has not read, however fast the machine is.
func (a *adversary) follow(name string) {
	var turn sync.Mutex // the random source is not safe for concurrent use
	strike := func() {
		turn.Lock()
		defer turn.Unlock()
		if err := a.strike(a.w.t.Context(), name); err != nil {
			a.w.t.Errorf("write nonsense: %v", err)
		}
	}
	a.w.cfg = rest.CopyConfig(a.w.cfg)
	a.w.cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodGet && strings.Contains(req.URL.Path, "/things/"+name) {
				strike()
			}
			return next.RoundTrip(req)
		})
	})
	a.w.cloud.with(func() { a.w.cloud.before = func(string, string) { strike() } })
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestTampering: somebody writes nonsense into status. Neither a condition nor the state is
// believed, so the API sees the same calls as without him.
func TestTampering(t *testing.T) {
	t.Parallel()
	t.Run("E0-14 conditions and state are shown and never believed", func(t *testing.T) {
		t.Parallel()
		want := restfulLife(t, func(*operatorTest) {})
		got := restfulLife(t, func(w *operatorTest) {
			for range 3 {
				if err := newAdversary(w).strike(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
			}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("calls of a life with rests (-without +with tampering):\n%s", diff)
		}
		if diff := cmp.Diff(busyLife(t, nil), busyLife(t, func(w *operatorTest) { newAdversary(w).follow("a") })); diff != "" {
			t.Errorf("calls of a life without a rest (-without +with tampering):\n%s", diff)
		}
		neededByAnother(t)
	})
}

// restfulLife lets tamper act whenever the operator has nothing left to do, and returns all calls.
// A token that tamper does not write shows which pass has ended.
func restfulLife(t *testing.T, tamper func(*operatorTest)) []string {
	t.Helper()
	w := newOperatorTest(t, named{}, func(o *options) { o.CallDeadline = time.Minute })
	rest := func(token string) {
		t.Helper()
		w.await("the end of the pass for "+token, func(o *thing.Thing) bool {
			return o.Status.HandledReconcile == token && o.Status.State == string(decide.StateSucceeded) &&
				is(o, "Ready", "True") && condition(o, "Ready").ObservedGeneration == o.Generation
		})
		if !w.until(func() bool { return w.trace.rests("a") }) {
			t.Fatal("the pass does not end")
		}
		tamper(w)
	}
	w.create(annotated(api.AnnotationReconcile, "created"))
	rest("created")
	for _, size := range []int{2, 3} {
		token := fmt.Sprintf("size %d", size)
		w.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}},"spec":{"size":%d}}`, api.AnnotationReconcile, token, size))
		rest(token)
	}
	w.delete()
	w.gone()
	return w.cloud.calls(true)
}

// busyLife returns the calls of a life in which the API is slow and fails, a row of like ones as one:
// how often it is observed is a matter of time. prepare, which may be nil, is called before the operator
// starts.
func busyLife(t *testing.T, prepare func(*operatorTest)) []string {
	t.Helper()
	w := prepareOperatorTest(t, named{})
	if prepare != nil {
		prepare(w)
	}
	w.start()
	w.cloud.with(func() {
		w.cloud.slow = map[string]bool{http.MethodPost: true, http.MethodPut: true, http.MethodDelete: true}
	})
	w.create()
	looks := func(n int) { t.Helper(); w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+n) }
	w.awaitCalls(http.MethodPost, 1)
	looks(3)
	w.cloud.settle("ONLINE")
	looks(1)
	w.resize(2)
	w.awaitCalls(http.MethodPut, 1)
	looks(3)
	w.cloud.settle("ONLINE")
	looks(1)
	w.cloud.faulty(always(http.MethodGet, answer{code: http.StatusInternalServerError, body: "out of order"}))
	w.poke("1")
	looks(5)
	w.cloud.faulty(nil)
	looks(1)
	w.delete()
	w.awaitCalls(http.MethodDelete, 1)
	looks(3)
	w.cloud.settle("")
	w.gone()
	return slices.Compact(w.cloud.calls(true))
}

// neededByAnother lets an adversary say Ready of what another object waits for.
func neededByAnother(t *testing.T) {
	t.Helper()
	w := newOperatorTest(t, named{})
	w.cloud.with(func() { w.cloud.slow = map[string]bool{http.MethodPost: true} })
	w.createAs("b")
	w.awaitCalls(http.MethodPost, 1)
	w.create(needs("b"))
	w.pending("a", "b")
	for i := range 20 {
		body := fmt.Sprintf(`{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True","reason":"X%d","message":"","observedGeneration":1,"lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`, i)
		obj := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "b"}}
		if err := w.admin.Status().Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	w.settled("a")
	if w.called(http.MethodPost, "a") {
		t.Error("made though what it needs is not ready")
	}
}
