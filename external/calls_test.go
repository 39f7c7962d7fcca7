package external_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// TestReasonOfEachCall: each kind of call that fails has its own reason, and the message contains the error.
func TestReasonOfEachCall(t *testing.T) {
	t.Parallel()
	t.Run("E0-39 E0-68 each failing call has its own reason", func(t *testing.T) {
		t.Parallel()
		broken := answer{code: http.StatusInternalServerError, body: "disk full"}
		reasons := map[string]string{}
		var mu sync.Mutex
		t.Run("calls", func(t *testing.T) {
			for name, test := range map[string]struct {
				fail func(w *operatorTest) // before the object is created
				then func(w *operatorTest) // when it is there; nil if it fails at once
				said string
			}{
				"connect": {fail: func(w *operatorTest) {
					w.options.Connect = func(context.Context) (*cloudClient, error) { return nil, errors.New("no route to the cloud") }
				}, said: "no route to the cloud"},
				"observe": {fail: func(w *operatorTest) { w.cloud.faulty(always(http.MethodGet, broken)) }, said: "disk full"},
				"create":  {fail: func(w *operatorTest) { w.cloud.faulty(always(http.MethodPost, broken)) }, said: "disk full"},
				"update": {
					fail: func(w *operatorTest) { w.cloud.faulty(always(http.MethodPut, broken)) },
					then: func(w *operatorTest) { w.resize(2) }, said: "disk full",
				},
				"delete": {
					fail: func(w *operatorTest) { w.cloud.faulty(always(http.MethodDelete, broken)) },
					then: func(w *operatorTest) { w.delete() }, said: "disk full",
				},
				"secret": {fail: func(w *operatorTest) {
					theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "conn"}}
					if err := w.admin.Create(w.t.Context(), theirs); err != nil {
						w.t.Fatal(err)
					}
				}, said: "does not belong to this object"},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					w := prepareOperatorTest(t, hosted{})
					test.fail(w)
					w.start()
					w.create(connected)
					if test.then != nil {
						w.ready()
						test.then(w)
					}
					got := w.await("Failed=True with what the other side said", func(o *thing.Thing) bool {
						return is(o, "Failed", "True") && strings.Contains(condition(o, "Failed").Message, test.said)
					})
					mu.Lock()
					defer mu.Unlock()
					reasons[name] = condition(got, "Failed").Reason
				})
			}
		})
		want := map[string]string{
			"connect": "ConnectFailed", "observe": "ObserveFailed", "create": "CreateFailed", "update": "UpdateFailed",
			"delete": "DeleteFailed", "secret": "PublishConflict",
		}
		if diff := cmp.Diff(want, reasons); diff != "" {
			t.Errorf("reasons (-want +got):\n%s", diff)
		}
	})
}

// four is a driver with the four calls and nothing else, which notes them and what they are given.
type four struct {
	named named

	mu    sync.Mutex
	calls []string
	seen  item
	// wrong: Update was given something else than the last observation.
	wrong bool
}

func (d *four) note(call string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.calls) == 0 || d.calls[len(d.calls)-1] != call {
		d.calls = append(d.calls, call)
	}
}

func (d *four) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *cloudClient]) (observation, error) {
	d.note("observe")
	o, err := d.named.Observe(ctx, r)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = o.Have
	return o, err
}

func (d *four) Compare(r external.CompareRequest[*thing.Thing, item]) external.Changes {
	return d.named.Compare(r)
}

func (d *four) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	d.note("create")
	return d.named.Create(ctx, r)
}

func (d *four) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, item]) (external.UpdateResponse[item], error) {
	d.note("update")
	d.mu.Lock()
	d.wrong = d.wrong || !cmp.Equal(d.seen, r.Have, cmp.AllowUnexported(item{}))
	d.mu.Unlock()
	return d.named.Update(ctx, r)
}

func (d *four) Delete(ctx context.Context, r external.DeleteRequest[*thing.Thing, *cloudClient]) (external.DeleteResponse, error) {
	d.note("delete")
	return d.named.Delete(ctx, r)
}

// TestFourCalls: a life takes four methods of the author's, and a name that a restart does not change.
func TestFourCalls(t *testing.T) {
	t.Parallel()
	t.Run("E0-70 create, delete, update and get are the author's calls", func(t *testing.T) {
		t.Parallel()
		d := &four{}
		w := newOperatorTest(t, d)
		w.create()
		w.ready()
		w.resize(2)
		w.ready()
		w.delete()
		w.gone()
		want := []string{"observe", "create", "observe", "update", "observe", "delete", "observe"}
		if diff := cmp.Diff(want, d.calls); diff != "" {
			t.Errorf("calls of the driver (-want +got):\n%s", diff)
		}
	})
	t.Run("E0-73 an update gets the observed attributes", func(t *testing.T) {
		t.Parallel()
		d := &four{}
		w := newOperatorTest(t, d)
		obj := w.create()
		w.ready()
		w.cloud.change("thing-"+string(obj.UID), func(i *item) { i.Host, i.Size = "moved.example.org", 9 })
		w.poke("look")
		w.awaitCalls(http.MethodPut, 1)
		w.ready()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.wrong || d.seen.Host != "moved.example.org" {
			t.Errorf("an update was not given the last observation, which is %+v", d.seen)
		}
	})
	t.Run("E0-06 a name survives a restart", func(t *testing.T) {
		t.Parallel()
		w := prepareOperatorTest(t, things{})
		w.cloud.faulty(always(http.MethodPost, answer{code: http.StatusServiceUnavailable}))
		w.start()
		obj := w.create()
		w.awaitCalls(http.MethodPost, 1) // named and recorded; nothing is created
		w.stop()
		w.cloud.faulty(nil)
		w.start()
		w.ready()
		posts := slices.DeleteFunc(w.cloud.calls(false), func(c string) bool { return !strings.HasPrefix(c, "POST ") })
		posts = slices.Compact(posts)
		if diff := cmp.Diff([]string{"POST thing-" + string(obj.UID)}, posts); diff != "" {
			t.Errorf("names of creates (-want +got):\n%s", diff)
		}
	})
}
