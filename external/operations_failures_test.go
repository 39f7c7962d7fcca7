package external_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// classed are operated things whose failures begin with their class.
type classed struct{ operated }

func (classed) Poll(ctx context.Context, r external.PollRequest[*thing.Thing, *cloudClient]) (external.PollResponse[item], error) {
	p, err := operated{}.Poll(ctx, r)
	if p.Err == nil {
		return p, err
	}
	switch class, _, _ := strings.Cut(p.Err.Error(), ":"); class {
	case "conflict":
		p.Err = external.Conflict(p.Err)
	case "throttled":
		p.Err = external.Throttled(p.Err, time.Hour)
	}
	return p, err
}

// private are operated things with a password, and a token that only the operation tells.
type private struct{ operated }

func (private) Connection(t *thing.Thing) external.Connection { return wired{}.Connection(t) }

func (private) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *cloudClient]) (observation, error) {
	return wired{}.Observe(ctx, r)
}

func (d private) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	o, err := d.change(ctx, r.Client, http.MethodPost, r.ID, "", &item{Size: r.Object.Spec.Size, Tags: r.Mark, Password: r.Passwords["password"]})
	return external.CreateResponse[item]{Operation: o}, err
}

func (d private) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, item]) (external.UpdateResponse[item], error) {
	r.Have.Size = r.Object.Spec.Size
	if r.Changes.Has("connection.password") {
		r.Have.Password = r.Passwords["password"]
	}
	o, err := d.change(ctx, r.Client, http.MethodPut, r.ID, "", &r.Have)
	return external.UpdateResponse[item]{Operation: o}, err
}

func (d private) Poll(ctx context.Context, r external.PollRequest[*thing.Thing, *cloudClient]) (external.PollResponse[item], error) {
	p, err := d.operated.Poll(ctx, r)
	if p.Done && r.Operation == "op-1" {
		p.Details = map[string][]byte{"token": []byte("one-time")}
	}
	return p, err
}

// madeBy makes the object "a" in operation op-1.
func (w *operatorTest) madeBy(change ...func(*thing.Thing)) {
	w.t.Helper()
	w.create(change...)
	w.endNext("op-1", "")
	w.ready()
}

// TestOperationsAndSpecs: the result of an operation for an earlier spec does not count for the present one.
func TestOperationsAndSpecs(t *testing.T) {
	t.Parallel()
	t.Run("corrected during an update", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, operated{})
		w.madeBy()
		w.resize(2)
		w.polled("op-2", 1)
		w.resize(3)
		w.await("to have seen it", func(o *thing.Thing) bool { return o.Status.ObservedGeneration == o.Generation })
		w.cloud.end("op-2", "invalid: size 2 is not for sale")
		w.endNext("op-3", "")
		w.ready()
	})
	t.Run("corrected during a create", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, operated{})
		w.create()
		w.polled("op-1", 1)
		w.resize(3)
		w.await("to have seen it", func(o *thing.Thing) bool { return o.Status.ObservedGeneration == o.Generation })
		w.cloud.end("op-1", "invalid: size 1 is not for sale")
		w.endNext("op-2", "")
		w.ready()
	})
	t.Run("reverted, and a restart", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, operated{})
		w.madeBy()
		w.resize(2)
		w.endNext("op-2", "invalid: size 2 is not for sale")
		w.failing("UpdateInvalid")
		w.resize(1)
		w.ready()
		history := w.follow("a")
		w.stop()
		w.start()
		w.poke("restarted")
		for _, o := range history.until("another look", func(o *thing.Thing) bool { return o.Status.HandledReconcile == "restarted" }) {
			if is(o, "Failed", "True") {
				t.Errorf("conditions of one in sync: %+v", o.Status.Conditions)
			}
		}
	})
	t.Run("recreated in operations, one of which fails", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, operated{})
		w.create(func(o *thing.Thing) { o.Spec.Tier = "tin" })
		w.endNext("op-1", "")
		w.ready()
		w.patch(`{"spec":{"tier":"gold"}}`)
		w.endNext("op-2", "it is in use")
		w.polled("op-3", 1)
		if got := w.get("a"); got.Status.State != "Recreating" {
			t.Errorf("state %s", got.Status.State)
		}
		w.cloud.end("op-3", "")
		w.endNext("op-4", "")
		w.ready()
		if diff := cmp.Diff([]string{"POST a", "DELETE a", "DELETE a", "POST a"}, w.cloud.calls(false)); diff != "" || w.cloud.get("a").Tier != "gold" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
	})
	t.Run("it still differs after three updates", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, operated{})
		w.madeBy()
		w.resize(2)
		for _, id := range []string{"op-2", "op-3", "op-4"} {
			w.polled(id, 1)
			w.cloud.with(func() { w.cloud.operations[id].Done = true }) // and did nothing
		}
		w.failing("NotConverging")
	})
}

// TestOperationsAndSecrets: passwords and tokens that go with operations.
func TestOperationsAndSecrets(t *testing.T) {
	t.Parallel()
	t.Run("a password that the operation repeats is not shown", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, private{})
		history := w.follow("a")
		w.create(connected)
		w.polled("op-1", 1) // the Secret is there by now
		w.cloud.end("op-1", "cannot CREATE USER IDENTIFIED BY "+string(w.details().Data["password"]))
		history.until("to fail", func(o *thing.Thing) bool { return strings.Contains(condition(o, "Failed").Message, "IDENTIFIED BY") })
		w.showsNo(string(w.details().Data["password"]))
	})
	t.Run("an update that was forgotten, or failed, gave no password", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, private{})
		w.madeBy(connected)
		w.patchDetails(`{"stringData":{"password":"new one"}}`)
		w.poke("1")
		w.polled("op-2", 1)
		w.cloud.with(func() {
			delete(w.cloud.operations, "op-2")
			w.cloud.operations["op-x"] = &operation{Done: true}
		})
		w.polled("op-3", 1)
		w.stop()
		w.start()
		w.endNext("op-3", "out of order")
		w.endNext("op-4", "")
		w.ready()
		if got := w.cloud.get("a").Password; got != "new one" {
			t.Errorf("the thing has password %q", got)
		}
	})
	t.Run("a token that the operation tells is asked for until it is stored", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, private{})
		w.create(connected)
		w.polled("op-1", 1)
		if err := w.admin.Delete(t.Context(), w.details()); err != nil {
			t.Fatal(err)
		}
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "conn"}}
		if err := w.admin.Create(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		w.cloud.end("op-1", "")
		w.failing("PublishConflict")
		w.stop()
		if err := w.admin.Delete(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.awaitDetails("the token", func(s *corev1.Secret) bool { return string(s.Data["token"]) == "one-time" })
	})
}

// TestDeletionNeedsNoSecret: what an operation brings is not in the way of a deletion.
func TestDeletionNeedsNoSecret(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, private{})
	w.create(connected)
	w.polled("op-1", 1)
	w.delete()
	w.await("to wait", func(o *thing.Thing) bool { return is(o, "Deleting", "True") })
	if err := w.admin.Delete(t.Context(), w.details()); err != nil {
		t.Fatal(err)
	}
	w.make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "conn"}})
	w.cloud.end("op-1", "")
	w.endNext("op-2", "")
	w.gone()
	if live := w.cloud.live(); len(live) > 0 {
		t.Errorf("left behind: %v", live)
	}
}

// TestOperationsOfOthers: what an operation proves about who owns a thing.
func TestOperationsOfOthers(t *testing.T) {
	t.Parallel()
	t.Run("the name was taken meanwhile, and nothing has marks", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, classed{}, func(o *options) { o.Unmarked, o.Limits = true, external.Limits{} })
		w.create()
		w.polled("op-1", 1)
		w.cloud.put("a", item{Size: 1, State: "ONLINE"})
		w.cloud.with(func() {
			w.cloud.operations["op-1"].Done, w.cloud.operations["op-1"].Error = true, "conflict: the name is taken"
		})
		w.failing("NotOurs")
		w.stop()
		w.start()
		w.delete()
		w.gone()
		if diff := cmp.Diff([]string{"POST a"}, w.cloud.calls(false)); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
	})
	t.Run("the object was restored from a backup", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, operated{})
		w.create()
		w.polled("op-1", 1)
		saved := w.get("a").Annotations[api.AnnotationExternal]
		w.stop()
		w.patch(`{"metadata":{"finalizers":null}}`)
		w.delete()
		w.gone()
		w.create(annotated(api.AnnotationExternal, saved))
		w.start()
		w.polled("op-1", 2)
		w.cloud.end("op-1", "")
		w.ready()
		if n := w.cloud.count(http.MethodPost); n != 1 {
			t.Errorf("%d creates", n)
		}
	})
	t.Run("the answer to the create was lost, and nothing shows of it", func(t *testing.T) {
		t.Parallel()
		w := loseAnswer(t, operated{}, func(o *options) { o.CreateGrace, o.OperationDeadline = 0, 3*time.Second })
		w.delete()
		w.start()
		w.await("to wait", func(o *thing.Thing) bool {
			return strings.HasPrefix(o.Status.Message, "waiting until an earlier create of")
		})
		w.cloud.end("op-1", "")
		w.endNext("op-2", "")
		w.gone()
		if live := w.cloud.live(); len(live) > 0 {
			t.Errorf("left behind: %v", live)
		}
	})
}

// TestOperationsGoOn: whatever the API answers meanwhile, an operation is followed to its end.
func TestOperationsGoOn(t *testing.T) {
	t.Parallel()
	t.Run("a conflict is shown", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, classed{}, func(o *options) { o.UniqueNames, o.CreateGrace = true, 10*time.Second })
		history := w.follow("a")
		w.create()
		w.endNext("op-1", "conflict: no network in that zone")
		history.until("the reason", func(o *thing.Thing) bool {
			return strings.Contains(condition(o, "Failed").Message, "no network in that zone")
		})
	})
	t.Run("a create that failed is repeated soon, though nothing says how soon things show", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, operated{}, func(o *options) { o.CreateGrace = 0 })
		w.create()
		w.endNext("op-1", "no capacity")
		w.endNext("op-2", "")
		w.ready()
	})
	t.Run("a quota is shown", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, classed{})
		history := w.follow("a")
		w.create()
		w.endNext("op-1", "throttled: too many operations")
		history.until("the reason", func(o *thing.Thing) bool {
			return strings.Contains(condition(o, "Failed").Message, "too many operations")
		})
	})
	for method, reason := range map[string]string{http.MethodGet: "PollInvalid", http.MethodDelete: "CancelInvalid"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, operated{}, func(o *options) { o.OperationDeadline, o.Loop.Retry.Attempts = 100*time.Millisecond, 2 })
			history := w.follow("a")
			w.cloud.faulty(func(m, name string) *answer {
				if m == method && strings.HasPrefix(name, "/operations/") {
					return &answer{code: http.StatusBadRequest, body: "malformed"}
				}
				return nil
			})
			w.create()
			history.until(reason, func(o *thing.Thing) bool { return condition(o, "Failed").Reason == reason })
			w.polled("op-1", 3)
			w.cloud.faulty(nil)
			w.cloud.end("op-1", "")
			w.ready()
			if calls := w.cloud.calls(false); method == http.MethodDelete && len(calls) != 2 {
				t.Errorf("want one create and one cancellation: %v", calls)
			}
		})
	}
	t.Run("a deletion that takes too long is not canceled", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, operated{}, func(o *options) { o.OperationDeadline = 100 * time.Millisecond })
		w.madeBy()
		w.delete()
		w.await("Timeout", func(o *thing.Thing) bool { return condition(o, "Deleting").Reason == "Timeout" })
		w.polled("op-2", 3)
		w.cloud.end("op-2", "")
		w.gone()
		if calls := w.cloud.calls(false); slices.Contains(calls, "DELETE /operations/op-2") {
			t.Errorf("changes %v", calls)
		}
	})
	t.Run("a deletion that is refused meanwhile waits", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, operated{})
		w.cloud.with(func() { w.cloud.shows = true })
		w.create()
		w.polled("op-1", 1)
		w.cloud.faulty(func(method, name string) *answer {
			if method == http.MethodDelete && name == "a" {
				return &answer{code: http.StatusConflict, body: "it is being created"}
			}
			return nil
		})
		w.delete()
		w.await("to wait", func(o *thing.Thing) bool {
			return strings.Contains(o.Status.Message, "is deleted when its creation ends")
		})
		w.polled("op-1", 10)
		if diff := cmp.Diff([]string{"POST a", "DELETE a", "DELETE /operations/op-1"}, w.cloud.calls(false)); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		w.cloud.faulty(nil)
		w.cloud.end("op-1", "")
		w.endNext("op-2", "")
		w.gone()
	})
	t.Run("a deletion without a record", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, operated{})
		w.madeBy()
		w.stop()
		w.patch(`{"metadata":{"annotations":{"` + api.AnnotationExternal + `":null}}}`)
		w.delete()
		w.start()
		w.polled("op-2", 10)
		if n := w.cloud.count(http.MethodDelete); n != 1 {
			t.Errorf("%d deletes while one goes on", n)
		}
		w.cloud.end("op-2", "")
		w.gone()
	})
	t.Run("the answer that ends it has the thing", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, returning{})
		w.create()
		w.endNext("op-1", "")
		w.ready()
		if n := len(others(w.cloud.calls(true))); n != 2 { // a search for the first record, and the create
			t.Errorf("calls %v", w.cloud.calls(true))
		}
	})
}

// returning are operated things that the operation returns.
type returning struct{ operated }

func (returning) Poll(ctx context.Context, r external.PollRequest[*thing.Thing, *cloudClient]) (external.PollResponse[item], error) {
	var o operation
	err := r.Client.send(ctx, http.MethodGet, "/operations/"+r.Operation, "", nil, &o)
	p := external.PollResponse[item]{Done: o.Done, After: 10 * time.Millisecond}
	if o.Made != nil {
		p.Observed = &observation{Phase: external.PhaseAvailable, Have: *o.Made, Mark: external.MarkOf(o.Made.Tags)}
	}
	return p, err
}
