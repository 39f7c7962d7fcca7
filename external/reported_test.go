package external_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// settling are things whose tier the cloud settles itself, whatever the spec says.
type settling struct {
	things
	compared *atomic.Int64
}

func (s settling) Compare(r external.CompareRequest[*thing.Thing, item]) external.Changes {
	s.compared.Add(1)
	return external.Diff(
		external.Field("spec.size", r.Object.Spec.Size, r.Have.Size),
		external.Ignore(external.Optional("spec.tier", r.Object.Spec.Tier, "gold")),
	)
}

// TestIgnoredDifference: what is shown and not acted on makes no thing unready, and its observations no
// dearer.
func TestIgnoredDifference(t *testing.T) {
	t.Parallel()
	compared := &atomic.Int64{}
	w := newOperatorTest(t, settling{compared: compared})
	obj := w.create(func(o *thing.Thing) { o.Spec.Tier = "tin" })
	got := w.ready()
	want := fmt.Sprintf(`thing %q matches the spec; not enforced: spec.tier is "gold", wanted "tin"`, name(obj))
	if got.Status.Message != want || condition(got, "Reconciling").Status != "" || condition(got, "Stalled").Status != "" {
		t.Errorf("message %q, want %q; conditions %+v", got.Status.Message, want, got.Status.Conditions)
	}
	looks, before := w.cloud.count(http.MethodGet), compared.Load()
	w.passes(1, func() { w.pokeAs("a", "1") })
	if n, looks := compared.Load()-before, int64(w.cloud.count(http.MethodGet)-looks); n != looks || looks == 0 {
		t.Errorf("compared %d times in %d looks", n, looks)
	}
}

// forged is a status that somebody wrote.
func forged(conditions ...metav1.Condition) map[string]any {
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.NewTime(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	return map[string]any{"status": map[string]any{"conditions": conditions}}
}

func isReady(generation int64) metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: "True", Reason: "Available", ObservedGeneration: generation}
}

// forge writes into the status of an object.
func (w *operatorTest) forge(name string, body map[string]any) {
	w.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	obj := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := w.admin.Status().Patch(w.t.Context(), obj, client.RawPatch(types.MergePatchType, data), client.FieldOwner("mallory")); err != nil {
		w.t.Fatal(err)
	}
}

// pokeAs asks for an observation of an object and waits until there was one.
func (w *operatorTest) pokeAs(name, token string) *thing.Thing {
	w.t.Helper()
	obj := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, api.AnnotationReconcile, token)
	if err := w.admin.Patch(w.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
	return w.awaitAs(name, "an observation", func(o *thing.Thing) bool { return o.Status.HandledReconcile == token })
}

// refusing lets the cloud refuse calls on one thing.
func refusing(method, thing string, code int, body string) func(string, string) *answer {
	return func(m, n string) *answer {
		if m == method && n == thing {
			return &answer{code: code, body: body}
		}
		return nil
	}
}

// TestForgedReady: Ready that its operator did not write is overwritten and believed by nobody.
func TestForgedReady(t *testing.T) {
	t.Parallel()
	t.Run("of a thing that is not ready", func(t *testing.T) {
		w := newOperatorTest(t, named{})
		w.cloud.put("a", item{Size: 7, State: "ONLINE"})
		w.create()
		w.failing("NotOurs")
		w.forge("a", forged(isReady(1)))
		if got := w.pokeAs("a", "1"); is(got, "Ready", "True") {
			t.Errorf("it stayed: %+v", got.Status.Conditions)
		}
	})
	t.Run("while no operator ran, and no observation succeeds", func(t *testing.T) {
		w := newOperatorTest(t, named{})
		w.cloud.put("a", item{Size: 7, State: "ONLINE"})
		w.create()
		w.failing("NotOurs")
		w.stop()
		w.forge("a", forged(isReady(1)))
		w.cloud.faulty(always(http.MethodGet, answer{code: http.StatusInternalServerError}))
		w.start()
		if got := w.failing("ObserveFailed"); !is(got, "Ready", "Unknown") {
			t.Errorf("Ready is %s; want Unknown", condition(got, "Ready").Status)
		}
	})
	t.Run("what our own operator wrote is believed after a restart", func(t *testing.T) {
		w := newOperatorTest(t, named{})
		w.create()
		w.ready()
		w.stop()
		w.cloud.faulty(always(http.MethodGet, answer{code: http.StatusInternalServerError}))
		w.start()
		if got := w.failing("ObserveFailed"); !is(got, "Ready", "True") || condition(got, "Ready").ObservedGeneration != 1 {
			t.Errorf("Ready is %+v; want True for 1", condition(got, "Ready"))
		}
	})
	t.Run("of a dependency", func(t *testing.T) {
		w := newOperatorTest(t, named{})
		w.cloud.faulty(refusing(http.MethodPost, "b", http.StatusUnprocessableEntity, "no"))
		w.createAs("b")
		w.awaitAs("b", "Failed", func(o *thing.Thing) bool { return is(o, "Failed", "True") })
		w.create(needs("b"))
		w.pending("a", "is not ready")
		w.forge("b", forged(isReady(1)))
		w.await("the dependent to say that nobody believes it", func(o *thing.Thing) bool {
			return strings.Contains(condition(o, "DependenciesReady").Message, "that its operator did not write")
		})
		w.pokeAs("a", "1")
		if made := w.cloud.get("a"); made != nil {
			t.Error("it made the operator create a thing")
		}
		w.cloud.faulty(nil)
		w.pokeAs("b", "1")
		w.ready()
	})
	t.Run("just as its operator would write it", func(t *testing.T) {
		w := newOperatorTest(t, named{})
		w.createAs("b")
		b := w.awaitAs("b", "Ready", func(o *thing.Thing) bool { return is(o, "Ready", "True") })
		honest := condition(b, "Ready")
		w.forge("b", forged(metav1.Condition{Type: "Ready", Status: "False", Reason: "X"}))
		w.forge("b", map[string]any{"status": map[string]any{"conditions": b.Status.Conditions}})
		w.create(needs("b"))
		w.pending("a", "that its operator did not write")
		w.pokeAs("b", "1")
		w.ready()
		if now := condition(w.get("b"), "Ready"); now != honest {
			t.Errorf("Ready is %+v, was %+v", now, honest)
		}
	})
}

// TestStatusIsNoInput: whatever somebody writes into status, the same is done outside.
func TestStatusIsNoInput(t *testing.T) {
	t.Parallel()
	t.Run("E0-14 status is shown and never believed", func(t *testing.T) {
		want := livesTogether(t, func(*operatorTest, string) {})
		for seed := range uint64(3) {
			rng := rand.New(rand.NewPCG(14, seed))
			got := livesTogether(t, func(w *operatorTest, name string) {
				if name == "" {
					return
				}
				w.forge(name, scribble(rng))
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("seed %d: calls (-without +with an adversary):\n%s", seed, diff)
			}
		}
	})
}

// scribble is a status at random: every condition, and the state.
func scribble(rng *rand.Rand) map[string]any {
	var conditions []metav1.Condition
	for _, kind := range []string{"Ready", "Creating", "Updating", "Deleting", "Failed", "DependenciesReady", "Reconciling", "Stalled", "Paused", "PolicyInvalid"} {
		c := metav1.Condition{
			Type: kind, Status: []metav1.ConditionStatus{"True", "False", "Unknown"}[rng.IntN(3)],
			Reason: []string{"Available", "X", "NotOurs"}[rng.IntN(3)], ObservedGeneration: rng.Int64N(4),
		}
		if kind == "Ready" && rng.IntN(2) == 0 {
			c.Status, c.ObservedGeneration = "True", 1
		}
		conditions = append(conditions, c)
	}
	body := forged(conditions...)
	status, _ := body["status"].(map[string]any)
	maps.Copy(status, map[string]any{
		"state":             []string{"Succeeded", "Terminating", "Failed", ""}[rng.IntN(4)],
		"appliedGeneration": rng.Int64N(100), "observedGeneration": rng.Int64N(4),
		"external": map[string]any{"id": "nonsense", "incarnation": rng.Int64N(50)},
	})
	return body
}

// livesTogether leads two objects, one of which needs the other, through their lives, and
// returns the calls that change the outside. disturb is called again and again.
func livesTogether(t *testing.T, disturb func(w *operatorTest, name string)) []string {
	t.Helper()
	w := newOperatorTest(t, named{})
	token := 0
	look := func(names ...string) {
		for _, n := range names {
			token++
			w.pokeAs(n, fmt.Sprint(token))
		}
	}
	ready := func(name string) {
		w.awaitAs(name, "Ready", func(o *thing.Thing) bool {
			return is(o, "Ready", "True") && condition(o, "Ready").ObservedGeneration == o.Generation && o.Status.State == "Succeeded"
		})
	}
	w.cloud.faulty(refusing(http.MethodPost, "b", http.StatusUnprocessableEntity, "no"))
	w.createAs("b")
	w.create(needs("b"))
	w.awaitAs("b", "Failed", func(o *thing.Thing) bool { return is(o, "Failed", "True") })
	w.await("Pending", func(o *thing.Thing) bool { return o.Status.State == "Pending" })
	for range 3 {
		disturb(w, "b")
		disturb(w, "a")
		look("a", "b", "a")
	}
	w.cloud.faulty(nil)
	look("b", "a")
	ready("b")
	ready("a")
	disturb(w, "a")
	disturb(w, "b")
	look("b", "a")
	w.resize(2)
	w.await("the new size", func(o *thing.Thing) bool { return o.Status.ObservedGeneration == 2 && is(o, "Ready", "True") })
	disturb(w, "a")
	w.delete()
	w.gone()
	disturb(w, "b")
	look("b")
	w.remove("b")
	testGone(w, "b")
	return w.cloud.calls(false)
}

func testGone(w *operatorTest, name string) {
	w.t.Helper()
	if !w.until(func() bool { return apiGone(w, name) }) {
		w.t.Fatalf("%s does not go", name)
	}
}

// TestRefusedDelete: a delete that the API refuses for now says why.
func TestRefusedDelete(t *testing.T) {
	w := newOperatorTest(t, named{})
	w.create()
	w.ready()
	w.cloud.faulty(always(http.MethodDelete, answer{code: http.StatusConflict, body: "it owns database orders"}))
	w.delete()
	got := w.await("the reason", func(o *thing.Thing) bool {
		return condition(o, "Ready").Reason == "DeleteConflict" && o.Status.State == "Terminating"
	})
	for _, m := range []string{got.Status.Message, condition(got, "Ready").Message, condition(got, "Deleting").Message, condition(got, "Reconciling").Message} {
		if !strings.HasPrefix(m, `cannot delete thing "a": `) || !strings.Contains(m, "it owns database orders") || !strings.HasSuffix(m, "; retrying") {
			t.Errorf("message %q", m)
		}
	}
	if is(got, "Failed", "True") {
		t.Error("Failed flaps")
	}
	w.awaitCalls(http.MethodDelete, 3)
	w.awaitEvent("DeleteConflict")
	if !w.until(func() bool { return callsCounted(t, "delete", "Conflict") >= 3 }) {
		t.Errorf("%v deletes that were refused are counted", callsCounted(t, "delete", "Conflict"))
	}
	if n := w.eventsOf("DeleteConflict"); !slices.Equal(n, []string{"Warning DeleteConflict"}) {
		t.Errorf("events %v", n)
	}
	w.cloud.faulty(nil)
	w.gone()
}

// callsCounted is how many calls of Things are counted.
func callsCounted(t *testing.T, op, class string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"kind": "Thing", "op": op, "class": class}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == "trimtab_external_calls_total" && maps.Equal(labels, want) {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// eventsOf lists the events with a reason as "Warning CreateFailed".
func (w *operatorTest) eventsOf(reason string) []string {
	w.t.Helper()
	var out []string
	for _, e := range w.events() {
		var event struct{ Type, Reason string }
		if err := json.Unmarshal([]byte(e), &event); err != nil {
			w.t.Fatal(err)
		}
		if reason == "" || event.Reason == reason {
			out = append(out, event.Type+" "+event.Reason)
		}
	}
	return out
}

// TestVendorAway: state, message, conditions and event tell of the present, together.
func TestAPIUnreachable(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.create()
	w.ready()
	for i, size := range []int{2, 3} {
		w.cloud.faulty(always(http.MethodGet, answer{code: http.StatusInternalServerError, body: "out of order"}))
		w.resize(size)
		got := w.await("the failure to be reported", func(o *thing.Thing) bool {
			return is(o, "Failed", "True") && o.Status.ObservedGeneration == o.Generation
		})
		for what, m := range map[string]string{"status.message": got.Status.Message, "Reconciling": condition(got, "Reconciling").Message, "Failed": condition(got, "Failed").Message} {
			if !strings.HasPrefix(m, `cannot observe thing "a": `) || !strings.HasSuffix(m, "; retrying") {
				t.Errorf("%s says %q", what, m)
			}
		}
		if r := condition(got, "Reconciling").Reason; r != "ObserveFailed" || !is(got, "Ready", "True") || got.Status.State != "Failed" {
			t.Errorf("Reconciling %s, Ready %s, state %s", r, condition(got, "Ready").Status, got.Status.State)
		}
		if ready := condition(got, "Ready"); strings.Contains(ready.Message, "cannot") || ready.ObservedGeneration != int64(i+1) {
			t.Errorf("Ready says %q of generation %d", ready.Message, ready.ObservedGeneration)
		}
		w.cloud.faulty(nil)
		w.ready()
	}
	w.until(func() bool { return len(w.eventsOf("ObserveFailed")) == 2 })
	if n := w.eventsOf("ObserveFailed"); !slices.Equal(n, []string{"Warning ObserveFailed", "Warning ObserveFailed"}) {
		t.Errorf("the same failure is reported as %v", n)
	}
	for _, e := range w.eventsOf("Available") {
		if e != "Normal Available" {
			t.Errorf("reported as %s", e)
		}
	}
}

// TestTextsFromTheAPI: what the API says reaches no user unchanged.
func TestTextsFromTheAPI(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ why, said, want string }{
		"a password in a URL": {"it would be in clear", `dial "nats://app:hunter2@nats:4222": refused`, "(sensitive)@nats:4222"},
		"a bearer token":      {"it would be in clear", "sent Authorization: Bearer hunter2", "Authorization: (sensitive)"},
		"no UTF-8":            {"the status would be written at every observation", "bad \xff\xfe byte hunter", "bad \uFFFD byte hunter"},
		"very long":           {"the API server would refuse the whole status", strings.Repeat("x", 60_000), "xxx …"},
	}
	for _, title := range slices.Sorted(maps.Keys(tests)) {
		test := tests[title]
		t.Run(title, func(t *testing.T) {
			w := newOperatorTest(t, named{})
			w.cloud.faulty(always(http.MethodPost, answer{code: http.StatusInternalServerError, body: test.said}))
			w.create()
			got := w.failing("CreateFailed")
			if !strings.Contains(condition(got, "Failed").Message, test.want) {
				t.Errorf("%s: message %q", test.why, condition(got, "Failed").Message)
			}
			w.awaitEvent("CreateFailed")
			before := len(w.writes("a"))
			w.awaitCalls(http.MethodPost, w.cloud.count(http.MethodPost)+4)
			if now := w.writes("a"); len(now) != before {
				t.Errorf("%s: written again: %v", test.why, now[before:])
			}
			all, err := json.Marshal(w.get("a"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(all), "hunter2") || strings.Contains(strings.Join(w.events(), "\n"), "hunter2") {
				t.Errorf("%s: the secret is in status or events", test.why)
			}
		})
	}
	t.Run("a reason that Kubernetes does not take", func(t *testing.T) {
		w := newOperatorTest(t, odd{})
		obj := w.create()
		w.ready()
		w.cloud.change(name(obj), func(i *item) { i.State = "BROKEN" })
		w.pokeAs("a", "1")
		got := w.await("Failed", func(o *thing.Thing) bool { return is(o, "Failed", "True") })
		if r := condition(got, "Failed").Reason; !strings.HasPrefix(r, "Quota") || len(r) > 1024 {
			t.Errorf("reason %.40q of %d", r, len(r))
		}
	})
}

// odd gives reasons that no API server takes.
type odd struct{ things }

func (odd) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *cloudClient]) (observation, error) {
	o, err := things{}.Observe(ctx, r)
	if o.Phase == external.PhaseFailed {
		o.Reason = "Quota exceeded! " + strings.Repeat("x", 2000)
	}
	return o, err
}

// secretive are things with a password.
type secretive struct {
	named
	want *atomic.Value
}

func (s secretive) Compare(r external.CompareRequest[*thing.Thing, item]) external.Changes {
	return external.Diff(
		external.Field("spec.size", r.Object.Spec.Size, r.Have.Size),
		external.Sensitive(external.Field("spec.passwordSecretRef", s.want.Load(), r.Have.Tags["password"])),
	)
}

func (s secretive) tags(have map[string]string) map[string]string {
	tags := map[string]string{}
	maps.Copy(tags, have)
	tags["password"], _ = s.want.Load().(string)
	return tags
}

func (s secretive) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	i := item{Size: r.Object.Spec.Size, Tags: s.tags(r.Mark)}
	return external.CreateResponse[item]{}, r.Client.call(ctx, http.MethodPost, r.ID, &i, nil)
}

func (s secretive) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, item]) (external.UpdateResponse[item], error) {
	r.Have.Size, r.Have.Tags = r.Object.Spec.Size, s.tags(r.Have.Tags)
	return external.UpdateResponse[item]{}, r.Client.call(ctx, http.MethodPut, r.ID, &r.Have, nil)
}

// TestWhoChangedIt: what we want ourselves is not reported as a change by others.
func TestWhoChangedIt(t *testing.T) {
	t.Parallel()
	want := &atomic.Value{}
	want.Store("one")
	w := newOperatorTest(t, secretive{want: want})
	w.create()
	w.ready()
	want.Store("two")
	w.pokeAs("a", "1")
	w.awaitCalls(http.MethodPut, 1)
	w.ready()
	w.cloud.change("a", func(i *item) { i.Size = 99 })
	w.pokeAs("a", "2")
	w.awaitCalls(http.MethodPut, 2)
	w.awaitEvent("DriftRepaired")
	for _, e := range w.events() {
		if strings.Contains(e, "DriftRepaired") && strings.Contains(e, "(sensitive)") {
			t.Errorf("our own change is reported as that of others: %s", e)
		}
	}
}
