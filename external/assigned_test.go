package external_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// numbered are things to which the API assigns ids. It takes idempotency keys.
type numbered struct{ named }

func (numbered) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	var made item
	err := r.Client.send(ctx, http.MethodPost, "", r.Token, &item{Size: r.Object.Spec.Size, Tags: r.Mark}, &made)
	return external.CreateResponse[item]{ID: made.ID}, err
}

// listed are numbered things that are found in a list. Nothing reads the idempotency keys of their creates.
type listed struct{ numbered }

func (listed) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	r.Token = ""
	return numbered{}.Create(ctx, r)
}

func (listed) Find(ctx context.Context, r external.FindRequest[*thing.Thing, *cloudClient]) (external.FindResponse, error) {
	var all []item
	err := r.Client.send(ctx, http.MethodGet, "", "", nil, &all)
	var found external.FindResponse
	for _, i := range all {
		found.Found = append(found.Found, external.Found{ID: i.ID, Mark: external.MarkOf(i.Tags)})
	}
	return found, err
}

// unlisted are numbered things that nothing finds.
type unlisted struct{ driver[*thing.Thing] }

func assigns(tokens bool) func(*options) {
	return func(o *options) { o.AssignedIDs, o.Tokens = true, tokens }
}

// live are the ids of the things in the cloud.
func (c *cloud) live() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for id := range c.items {
		ids = append(ids, id)
	}
	return ids
}

// TestAssignedIDs: the answer to a create is lost, and so is the operator. The resource is found again, or a person is asked.
func TestAssignedIDs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		driver driver[*thing.Thing]
		tokens bool
		posts  int
	}{
		"by its token": {numbered{}, true, 2},
		"by its mark":  {listed{}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := loseAnswer(t, test.driver, assigns(test.tokens))
			w.start()
			got := w.ready()
			if live := w.cloud.live(); len(live) != 1 || got.Status.External.ID != live[0] || w.cloud.count(http.MethodPost) != test.posts {
				t.Errorf("things %v, the object has %+v; calls %v", live, got.Status.External, w.cloud.calls(true))
			}
			w.resize(3)
			w.ready()
			w.delete()
			w.gone()
			if live := w.cloud.live(); len(live) > 0 {
				t.Errorf("left behind: %v", live)
			}
		})
		t.Run(name+", which is being deleted", func(t *testing.T) {
			t.Parallel()
			w := loseAnswer(t, test.driver, assigns(test.tokens))
			w.delete()
			w.start()
			w.gone()
			if live := w.cloud.live(); len(live) > 0 {
				t.Errorf("left behind: %v", live)
			}
		})
	}
	t.Run("by a person", foundByAPerson)
	t.Run("several have the mark", severalFound)
	t.Run("writes", assignedWrites)
	t.Run("without an id", withoutAnID)
}

// loseAnswer creates an object whose create takes effect, and ends the operator before it gets the answer.
func loseAnswer(t *testing.T, d driver[*thing.Thing], change ...func(*options)) *operatorTest {
	t.Helper()
	w := prepareOperatorTest(t, d, change...)
	w.cloud.losePosts()
	w.start()
	w.create()
	w.awaitCalls(http.MethodPost, 1)
	w.stop()
	w.cloud.faulty(nil)
	return w
}

// losePosts lets the first create take effect and fail. No call reaches the cloud after it, until the cloud is faulty(nil).
func (c *cloud) losePosts() {
	var lost atomic.Bool
	c.faulty(func(method, _ string) *answer {
		switch first := method == http.MethodPost && !lost.Load(); {
		case first:
			lost.Store(true)
			return &answer{code: http.StatusBadGateway, effect: true}
		case lost.Load():
			return &answer{code: http.StatusServiceUnavailable, away: true}
		}
		return nil
	})
}

// foundByAPerson: if nothing can find the resource, nothing more is created, and a person says when that can be done.
func foundByAPerson(t *testing.T) {
	t.Parallel()
	w := loseAnswer(t, unlisted{numbered{}}, assigns(false))
	w.start()
	unknown := func(o *thing.Thing) bool {
		return condition(o, "Failed").Reason == "CreateUnknown" && is(o, "Stalled", "True")
	}
	got := w.await("to ask", unknown)
	if !strings.Contains(got.Status.Message, "find the resource, delete it, and remove annotation "+api.AnnotationExternal) {
		t.Errorf("message %q", got.Status.Message)
	}
	w.resize(2)
	w.await("to ask for the next spec, too", func(o *thing.Thing) bool { return unknown(o) && o.Status.ObservedGeneration == o.Generation })
	live := w.cloud.live()
	if n := w.cloud.count(http.MethodPost); n != 1 || len(live) != 1 {
		t.Fatalf("%d creates, things %v", n, live)
	}
	w.stop()
	w.cloud.with(func() { delete(w.cloud.items, live[0]) })
	w.patch(`{"metadata":{"annotations":{"` + api.AnnotationExternal + `":null}}}`)
	w.start()
	w.ready()
	w.delete()
	w.gone()
	if live := w.cloud.live(); len(live) > 0 || w.cloud.count(http.MethodPost) != 2 {
		t.Errorf("left behind: %v; calls %v", live, w.cloud.calls(true))
	}
}

// severalFound: if two resources carry the mark, the status names both, and neither is touched.
func severalFound(t *testing.T) {
	t.Parallel()
	w := loseAnswer(t, listed{}, assigns(false))
	first := w.cloud.live()[0]
	w.cloud.with(func() {
		for _, i := range w.cloud.items {
			copied := *i
			copied.ID = "i-copy"
			w.cloud.items["i-copy"] = &copied
			break
		}
	})
	w.start()
	got := w.failing("Duplicate")
	if m := got.Status.Message; !strings.Contains(m, `"`+first+`" and "i-copy"; delete all but one of them`) {
		t.Errorf("message %q", m)
	}
	w.cloud.with(func() { delete(w.cloud.items, "i-copy") })
	w.poke("deleted")
	if got := w.ready(); got.Status.External.ID != first {
		t.Errorf("it has %+v", got.Status.External)
	}
}

// assignedWrites: what a life costs.
func assignedWrites(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, numbered{}, assigns(true))
	w.create()
	w.ready()
	wantWrites(t, w, "finalizer with the marker, id, status", "patch", "patch", "apply status")
	w.resize(2)
	w.ready()
	w.delete()
	w.gone()
	if diff := cmp.Diff([]string{"POST ", "PUT i-1", "DELETE i-1"}, w.cloud.calls(false)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// nameless forgets to return the id.
type nameless struct{ listed }

func (n nameless) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	_, err := n.listed.Create(ctx, r)
	return external.CreateResponse[item]{}, err
}

// withoutAnID: the driver does not return the id, which the mark finds.
func withoutAnID(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, nameless{}, assigns(false), func(o *options) { o.CreateGrace = 100 * time.Millisecond })
	w.create()
	w.ready()
	if n := w.cloud.count(http.MethodPost); n != 1 {
		t.Errorf("%d creates", n)
	}
}
