package loop_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/internal/overtake"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

const finalizer = "probes.probe.trimtab.dev/finalizer"

// undone is what a cleanup was called with.
type undone struct {
	UID        types.UID
	Vanished   bool
	Marked     bool
	Finalizers []string
	Stored     error // of Persist
}

// vanishing is a controllerTest in which the Probe a is deleted despite its finalizer.
func vanishing(t *testing.T, a cleaner, o options) *controllerTest {
	t.Helper()
	deletion := overtake.Of("probes", "a", 1)
	w := newControllerTest(t, a, o, deletion.Transport)
	w.create("canary")
	deletion.Install(t, w.cfg, w.admin, w.get("canary"), "probes")
	w.create("a")
	w.delete()
	w.gone()
	return w
}

// TestVanished: an object that the API server removed in spite of its finalizer is cleaned up.
func TestVanished(t *testing.T) {
	t.Parallel()
	t.Run("it is cleaned up from its last version, and people are told", func(t *testing.T) {
		t.Parallel()
		calls := make(chan undone, 10)
		a := cleaner{author: newAuthor(nil), cleanup: func(ctx context.Context, r *run) loop.CleanupOutcome {
			r.Obj.Annotations = map[string]string{"noted": "yes"}
			r.Event("Normal", "Undone", "by the author")
			calls <- undone{r.Obj.UID, r.Vanished(), !r.Obj.DeletionTimestamp.IsZero(), r.Obj.Finalizers, r.Persist(ctx)}
			return loop.CleanedUp()
		}}
		w := vanishing(t, a, options{})
		got := awaitUndone(t, calls)
		if diff := cmp.Diff(undone{UID: got.UID, Vanished: true, Marked: true, Finalizers: []string{finalizer}}, got); diff != "" {
			t.Errorf("the cleanup (-want +got):\n%s", diff)
		}
		for _, reason := range []string{"Vanished", "Undone", "CleanedUp"} {
			w.awaitEvent("a", reason)
		}
		w.settled(a.author)
		if n := a.count("cleanup"); n != 1 {
			t.Errorf("%d cleanups, want one", n)
		}
		for _, r := range w.requests.Writes("probes", w.namespace, "a") {
			if r.Code == http.StatusNotFound && strings.Contains(string(r.Body), "noted") {
				t.Errorf("written to an object that is gone: %s", r)
			}
		}
	})
	t.Run("also if the pass that makes the thing is still under way", func(t *testing.T) {
		t.Parallel()
		gone, undo := make(chan struct{}), make(chan undone, 10)
		made := false
		a := cleaner{
			author: newAuthor(func(_ context.Context, r *run) loop.Outcome {
				if r.Obj.Name == "a" {
					<-gone
					made = true
				}
				return loop.Done()
			}),
			cleanup: func(_ context.Context, r *run) loop.CleanupOutcome {
				undo <- undone{Vanished: r.Vanished() && made}
				made = false
				return loop.CleanedUp()
			},
		}
		w := vanishing(t, a, options{})
		close(gone)
		if got := awaitUndone(t, undo); !got.Vanished {
			t.Error("the cleanup came before the thing was made")
		}
		w.settled(a.author)
		if made {
			t.Error("what was made is left")
		}
	})
	t.Run("a failure is tried again for ever, and a namesake waits until it is done", func(t *testing.T) {
		t.Parallel()
		heal := make(chan struct{})
		a := cleaner{author: newAuthor(nil), cleanup: func(_ context.Context, r *run) loop.CleanupOutcome {
			select {
			case <-heal:
				return loop.CleanedUp()
			default:
				return loop.CleanupFailed(errors.New("the pump is away"))
			}
		}}
		w := vanishing(t, a, options{Retry: linear(1)})
		for tried := 0; tried < 4; {
			if c := w.next(a.author); c.Name == "a" && c.Method == "cleanup" {
				tried++
			}
		}
		w.awaitEvent("a", "CleanupFailed")
		w.create("a")
		p := w.await("a", "to wait", func(p *probe.Probe) bool { return condition(p, "Ready") != nil })
		want := "waiting: an earlier Probe of this name is gone but not cleaned up: the pump is away; a restart of the operator leaves behind what belongs to it"
		if c := condition(p, "Ready"); c.Reason != "PredecessorNotCleanedUp" || c.Message != want {
			t.Errorf("Ready is %s: %s", c.Reason, c.Message)
		}
		if len(p.Finalizers) > 0 {
			t.Errorf("the namesake is worked on before it is its turn: %v", p.Finalizers)
		}
		close(heal)
		w.await("a", "to be Ready", ready)
	})
}

func awaitUndone(t *testing.T, from <-chan undone) undone {
	t.Helper()
	select {
	case u := <-from:
		return u
	case <-time.After(poll.Patience):
		t.Fatal("nothing was cleaned up")
		return undone{}
	}
}

// TestDeletedAtOnce deletes objects while they are being finalized, without any hold: whatever
// the API server makes of it, nothing that was made is left.
func TestDeletedAtOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	things := map[types.UID]bool{}
	a := cleaner{
		author: newAuthor(func(_ context.Context, r *run) loop.Outcome {
			mu.Lock()
			defer mu.Unlock()
			things[r.Obj.UID] = true
			return loop.Done()
		}),
		cleanup: func(_ context.Context, r *run) loop.CleanupOutcome {
			mu.Lock()
			defer mu.Unlock()
			delete(things, r.Obj.UID)
			return loop.CleanedUp()
		},
	}
	a.ended = make(chan call, 10000)
	w := newControllerTest(t, a, options{})
	var rounds sync.WaitGroup
	for n := range 60 {
		rounds.Go(func() {
			p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("p%d", n)}}
			if err := w.admin.Create(t.Context(), p); err != nil {
				t.Error(err)
				return
			}
			<-time.After(time.Duration(n%25) * time.Millisecond) // the race is about this instant
			if err := w.admin.Delete(t.Context(), p); err != nil {
				t.Error(err)
			}
		})
	}
	rounds.Wait()
	for n := range 60 {
		p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("p%d", n)}}
		testenv.Gone(t, w.admin, p, "to be gone")
	}
	w.settled(a.author)
	mu.Lock()
	defer mu.Unlock()
	if len(things) > 0 {
		t.Errorf("%d of 60 things are left whose objects are gone", len(things))
	}
}
