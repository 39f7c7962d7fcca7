package external_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// tooSoon is a driver that returns that what it deletes is gone, although its API deletes nothing
// yet.
type tooSoon struct {
	named
	deletes *atomic.Bool
}

func (d tooSoon) Delete(ctx context.Context, r external.DeleteRequest[*thing.Thing, *cloudClient]) (external.DeleteResponse, error) {
	method := http.MethodDelete
	if !d.deletes.Load() {
		method = http.MethodPatch // which the cloud accepts, and which changes nothing
	}
	return external.DeleteResponse{Gone: true}, r.Client.call(ctx, method, r.ID, nil, nil)
}

// TestGoneThatIsNot: a driver returns Gone for a resource that observations still show. A
// re-creation ends after three such deletes, and once that was seen, the object is not let go by
// such an answer alone.
func TestGoneThatIsNot(t *testing.T) {
	t.Parallel()
	for name, grace := range map[string]time.Duration{"reads are never behind": -1, "reads may be behind": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := tooSoon{deletes: &atomic.Bool{}}
			w := newOperatorTest(t, d, drifting(20*time.Millisecond), func(o *options) { o.CreateGrace = grace })
			w.create()
			w.ready()
			w.patch(`{"spec":{"tier":"tin"}}`)
			got := w.failing("NotConverging")
			const want = `3 calls of Delete returned that thing "a" is gone, but Observe still shows it, so it cannot be recreated: spec.tier "" → "tin"; ` +
				"delete it in the external system; the driver must set DeleteResponse.Gone only if no observation shows the resource again"
			if got.Status.Message != want {
				t.Errorf("message %q, want %q", got.Status.Message, want)
			}
			w.settled("a")
			w.settled("a")
			if n := w.cloud.count(http.MethodPatch); n != 3 {
				t.Errorf("%d deletes of the thing, want 3", n)
			}
			if n := w.cloud.count(http.MethodPost); n > 2 {
				t.Errorf("%d creates, want one more than the first: %v", n, w.cloud.calls(true))
			}
			w.delete()
			w.awaitCalls(http.MethodPatch, 4)
			d.deletes.Store(true)
			w.gone()
			if w.cloud.get("a") != nil {
				t.Errorf("the thing is left behind: %v", strings.Join(w.trace.rules("a"), ", "))
			}
		})
	}
}
