package external_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

const lastApplied = "trimtab.dev/last-applied-spec"

// quietly are things whose API does not show their account.
type quietly struct {
	named

	w *operatorTest

	mu    sync.Mutex
	given []string
	saw   []string // what was written down during each update
	fails bool
}

func (q *quietly) Compare(r external.CompareRequest[*thing.Thing, item]) external.Changes {
	return external.Diff(q.named.Compare(r), external.WriteOnly(r.Object, "spec.account"))
}

func (q *quietly) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, item]) (external.UpdateResponse[item], error) {
	var now thing.Thing
	if err := q.w.admin.Get(ctx, client.ObjectKeyFromObject(r.Object), &now); err != nil {
		return external.UpdateResponse[item]{}, err
	}
	response, err := q.named.Update(ctx, r)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.given, q.saw = append(q.given, r.Object.Spec.Account), append(q.saw, now.Annotations[lastApplied])
	if q.fails {
		return response, errors.New("the vault is sealed")
	}
	return response, err
}

func (q *quietly) updates() (given, saw []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.given), slices.Clone(q.saw)
}

func (q *quietly) fail(fails bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fails = fails
}

func TestWriteOnly(t *testing.T) {
	t.Parallel()
	q := &quietly{}
	w := prepareOperatorTest(t, q, func(o *options) { o.LastApplied = true })
	q.w = w
	w.start()
	written := func(why, want string) {
		t.Helper()
		w.await(why, func(o *thing.Thing) bool { return o.Annotations[lastApplied] == want })
	}
	w.create(func(o *thing.Thing) { o.Spec.Account = "first" })
	w.ready()
	written("what was created", `{"account":"first","size":1}`)

	w.patch(`{"spec":{"account":"second"}}`)
	w.ready()
	written("what was updated", `{"account":"second","size":1}`)
	if given, saw := q.updates(); !slices.Equal(given, []string{"second"}) || !slices.Equal(saw, []string{""}) {
		t.Errorf("updates %q, during which %q was written down", given, saw)
	}

	q.fail(true)
	w.patch(`{"spec":{"account":"third"}}`)
	w.failing("UpdateFailed")
	written("nothing after a failure", "")
	w.patch(`{"spec":{"account":"second"}}`) // which the resource had before the failed update
	q.fail(false)
	w.ready()
	written("what was updated again", `{"account":"second","size":1}`)
	given, _ := q.updates()
	if given[len(given)-1] != "second" {
		t.Errorf("updates %q", given)
	}

	w.stop()
	w.start()
	w.poke("1")
	w.ready()
	w.stop()
	w.annotate(lastApplied, "") // as an operator leaves it that is killed during an update
	w.start()
	written("what was updated after the crash", `{"account":"second","size":1}`)
	if more, _ := q.updates(); len(more) != len(given)+1 {
		t.Errorf("updates %q, then %q", given, more)
	}
}

// slowly are things that change in operations, and whose API does not show their account.
type slowly struct {
	quietly

	done atomic.Bool
}

func (s *slowly) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, item]) (external.UpdateResponse[item], error) {
	response, err := s.quietly.Update(ctx, r)
	response.Operation = external.Operation{ID: "op-1", After: time.Millisecond}
	return response, err
}

func (s *slowly) Poll(context.Context, external.PollRequest[*thing.Thing, *cloudClient]) (external.PollResponse[item], error) {
	return external.PollResponse[item]{Done: s.done.Load(), After: time.Millisecond}, nil
}

func TestWriteOnlyInOperations(t *testing.T) {
	t.Parallel()
	s := &slowly{}
	w := prepareOperatorTest(t, s, func(o *options) { o.LastApplied = true })
	s.w = w
	w.start()
	w.create(func(o *thing.Thing) { o.Spec.Account = "first" })
	w.ready()
	w.patch(`{"spec":{"account":"second"}}`)
	got := w.await("an update", func(o *thing.Thing) bool { return o.Status.State == "Updating" })
	if written := got.Annotations[lastApplied]; written != "" {
		t.Errorf("written while the operation goes on: %s", written)
	}
	s.done.Store(true)
	w.ready()
	w.await("what was updated", func(o *thing.Thing) bool { return o.Annotations[lastApplied] == `{"account":"second","size":1}` })
	if given, _ := s.updates(); !slices.Equal(given, []string{"second"}) {
		t.Errorf("updates %q", given)
	}
}
