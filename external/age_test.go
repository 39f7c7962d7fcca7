package external_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/internal/thing"
)

func TestAge(t *testing.T) {
	t.Parallel()
	t.Run("E1-05 status equals the resource within a poll, and says from when it is", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{}, drifting(20*time.Millisecond))
		before := time.Now().Truncate(time.Second)
		w.create()
		w.ready()
		w.cloud.change("a", func(i *item) { i.Host = "b.example.org" })
		got := w.await("the new address", func(o *thing.Thing) bool { return o.Status.Host == "b.example.org" })
		if at := got.Status.External.LastObservedTime; at != nil {
			t.Errorf("what describes the present says that it is from %s", at)
		}
		changed := time.Now()
		w.cloud.faulty(always(http.MethodGet, answer{code: http.StatusInternalServerError}))
		got = w.failing("ObserveFailed")
		at := got.Status.External.LastObservedTime
		if at == nil || at.Time.Before(before) || at.After(time.Now()) || got.Status.Host != "b.example.org" {
			t.Fatalf("the last observation was at %v, and found %q; the address was seen at %s", at, got.Status.Host, changed)
		}
		writes := len(w.writes("a"))
		w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+5)
		if got = w.get("a"); len(w.writes("a")) != writes || !got.Status.External.LastObservedTime.Equal(at) {
			t.Errorf("%d writes while it cannot be observed, from %v to %v", len(w.writes("a"))-writes, at, got.Status.External.LastObservedTime)
		}
		w.stop()
		w.start()
		w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+2)
		if got = w.get("a"); !got.Status.External.LastObservedTime.Equal(at) {
			t.Errorf("after a restart, from %v", got.Status.External.LastObservedTime)
		}
		w.cloud.faulty(nil)
		present := func(o *thing.Thing) bool {
			return o.Status.External.LastObservedTime == nil && is(o, "Failed", "False")
		}
		w.await("the present", present)
		w.stop()
		w.cloud.faulty(always(http.MethodGet, answer{code: http.StatusInternalServerError}))
		w.start()
		got = w.failing("ObserveFailed")
		if at := got.Status.External.LastObservedTime; at == nil || at.After(time.Now()) || at.Time.Before(before) {
			t.Errorf("by a process that has never observed it, from %v", at)
		}
		w.cloud.faulty(nil)
		w.await("the present", present)
	})
}
