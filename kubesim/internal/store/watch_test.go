package store

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// seen is what a watch showed so far.
type seen struct {
	shelf
	w watch.Interface
}

// watch opens a watch of all objects, which ends with the test.
func (s shelf) watch(gate *Gate, opts storage.ListOptions) seen {
	s.Helper()
	if opts.Predicate.Label == nil {
		bookmarks := opts.Predicate.AllowWatchBookmarks
		opts.Predicate = all()
		opts.Predicate.AllowWatchBookmarks = bookmarks
	}
	ctx := s.ctx
	if gate != nil {
		ctx = WithGate(ctx, gate)
	}
	w, err := s.Watch(ctx, "/configmaps", opts)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(w.Stop)
	return seen{s, w}
}

func everything(s shelf, gate *Gate) seen {
	return s.watch(gate, storage.ListOptions{Recursive: true, ResourceVersion: "1"})
}

// next returns what the watch has shown since the last time, "end" if it is over.
func (s seen) next() string {
	s.Helper()
	synctest.Wait()
	var events []string
	for {
		select {
		case e, ok := <-s.w.ResultChan():
			if !ok {
				return strings.Join(append(events, "end"), " ")
			}
			events = append(events, event(e))
			synctest.Wait()
		default:
			return strings.Join(events, " ")
		}
	}
}

func event(e watch.Event) string {
	switch o := e.Object.(type) {
	case *metav1.Status:
		return string(e.Type) + ":" + string(o.Reason)
	case *corev1.ConfigMap:
		text := string(e.Type) + ":" + brief(o)
		if initial, _ := storage.HasInitialEventsEndBookmarkAnnotation(o); initial {
			text += "(initial)"
		}
		return text
	}
	return "?"
}

func TestWatch(t *testing.T) {
	start := func(rv string) storage.ListOptions { return storage.ListOptions{Recursive: true, ResourceVersion: rv} }
	initial := func(rv string, send bool) storage.ListOptions {
		return storage.ListOptions{
			Recursive: true, ResourceVersion: rv, SendInitialEvents: new(send),
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			Predicate:            storage.SelectionPredicate{AllowWatchBookmarks: true},
		}
	}
	tests := map[string]struct {
		why   string
		opts  storage.ListOptions
		first string // what it shows of a=1@2 b=1@3 a=2@4
		then  string // of b deleted, c made
	}{
		"no revision":          {"state first, in the order of keys", start(""), "ADDED:a=2@4 ADDED:b=1@3", "DELETED:b=1@5 ADDED:c=1@6"},
		"any revision":         {"state too", start("0"), "ADDED:a=2@4 ADDED:b=1@3", "DELETED:b=1@5 ADDED:c=1@6"},
		"from a revision":      {"what happened after it", start("2"), "ADDED:b=1@3 MODIFIED:a=2@4", "DELETED:b=1@5 ADDED:c=1@6"},
		"from now":             {"nothing old", start("4"), "", "DELETED:b=1@5 ADDED:c=1@6"},
		"from later":           {"what comes before it is not shown", start("5"), "", "ADDED:c=1@6"},
		"without initial":      {"nothing old", initial("", false), "", "DELETED:b=1@5 ADDED:c=1@6"},
		"initial":              {"state, then a bookmark", initial("", true), "ADDED:a=2@4 ADDED:b=1@3 BOOKMARK:=@4(initial)", "DELETED:b=1@5 ADDED:c=1@6"},
		"initial, not older":   {"state, then a bookmark", initial("3", true), "ADDED:a=2@4 ADDED:b=1@3 BOOKMARK:=@4(initial)", "DELETED:b=1@5 ADDED:c=1@6"},
		"initial, from future": {"an event tells it", initial("9", true), "ERROR:Timeout end", "end"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(t)
				s.create("a", "1")
				s.create("b", "1")
				s.update("a", "2")
				w := s.watch(nil, test.opts)
				want(t, test.why, test.first, w.next())
				s.delete("b")
				s.create("c", "1")
				want(t, test.why+", then", test.then, w.next())
			})
		})
	}
}

func TestWatchOfOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		raw, err := s.Watch(s.ctx, "/configmaps/a", storage.ListOptions{Predicate: all()})
		if err != nil {
			t.Fatal(err)
		}
		w := seen{s, raw}
		s.create("a", "1")
		s.create("ab", "1")
		want(t, "events", "ADDED:a=1@2", w.next())
		raw.Stop()
		want(t, "after stop", "end", w.next())
		want(t, "watchers left", 0, len(s.db.watchers))
	})
}

// An object that begins to match a selector appears, one that ceases to is gone.
func TestWatchWithSelector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.create("a", "in")
		s.create("b", "out")
		w := s.watch(nil, storage.ListOptions{Recursive: true, Predicate: labelled("in")})
		want(t, "state", "ADDED:a=in@2", w.next())
		s.update("a", "out")
		want(t, "ceases to match: the object as it was, at the revision of now", "DELETED:a=in@4", w.next())
		s.update("a", "in")
		want(t, "begins to match", "ADDED:a=in@5", w.next())
		s.update("b", "still out")
		s.delete("b")
		want(t, "never matched", "", w.next())
		s.delete("a")
		want(t, "deleted", "DELETED:a=in@8", w.next())
	})
}

// What a watch shows is the reader's own.
func TestWatchesShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		one := everything(s, nil)
		s.create("a", "1")
		synctest.Wait()
		(<-one.w.ResultChan()).Object.(*corev1.ConfigMap).Data["value"] = "spoiled"
		// The create and a watch that come to an entry at the same instant may both decode it.
		before := s.decodes.Load()
		two := everything(s, nil)
		want(t, "the other", "ADDED:a=1@2", two.next())
		want(t, "decodes", before, s.decodes.Load())
	})
}

func heldOf(g *Gate) string {
	var all []string
	for _, h := range g.Held() {
		all = append(all, h.Change.Key)
	}
	return strings.Join(all, " ")
}

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		woken := 0
		gate := &Gate{Wake: func() { woken++ }}
		s.create("a", "1")
		open := everything(s, nil)
		state := s.watch(gate, storage.ListOptions{Recursive: true})
		late := everything(s, gate)
		want(t, "state is not held", "ADDED:a=1@2", state.next())
		want(t, "what a watch missed is held", "/configmaps/a", heldOf(gate))
		s.update("a", "2")
		want(t, "without a gate", "ADDED:a=1@2 MODIFIED:a=2@3", open.next())
		want(t, "behind a gate", "", state.next()+late.next())
		want(t, "held", "/configmaps/a /configmaps/a", heldOf(gate))
		want(t, "calls of Wake", 2, woken)

		held := gate.Held()
		want(t, "in the order of opening", []int{1, 2}, []int{held[0].Watch, held[1].Watch})
		gate.Deliver(held[1])
		want(t, "delivered, to one alone", "ADDED:a=1@2", late.next()+state.next())
		gate.Deliver(held[1])
		want(t, "the same again is nothing", "", late.next())
		next := gate.Held()[0]
		gate.Deliver(next)
		gate.Repeat(next)
		want(t, "delivered twice", "MODIFIED:a=2@3 MODIFIED:a=2@3", state.next())
		want(t, "left", "/configmaps/a", heldOf(gate))
	})
}

func TestGateOrdersByWhatIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		gate := &Gate{}
		for _, key := range []string{"/configmaps/b", "/configmaps/a"} {
			w, err := s.Watch(WithGate(s.ctx, gate), key, storage.ListOptions{Predicate: all()})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
		}
		s.create("b", "1")
		s.create("a", "1")
		want(t, "held", "/configmaps/a /configmaps/b", heldOf(gate))
	})
}

func TestBreak(t *testing.T) {
	for name, test := range map[string]struct {
		why  string
		gone bool
		want string
	}{
		"connection": {"the stream ends; the client goes on where it was", false, "end"},
		"gone":       {"the client is told to list again", true, "ERROR:Expired end"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(t)
				gate := &Gate{}
				w, other := everything(s, gate), everything(s, nil)
				s.create("a", "1")
				gate.Break(2, test.gone) // there is no such watch
				want(t, "held by the others", "/configmaps/a", heldOf(gate))
				gate.Break(1, test.gone)
				s.create("b", "1")
				want(t, "held", "", heldOf(gate))
				want(t, test.why, test.want, w.next())
				want(t, "without the gate", "ADDED:a=1@2 ADDED:b=1@3", other.next())
				gate.Break(1, test.gone) // once more
				again := s.watch(gate, storage.ListOptions{Recursive: true, ResourceVersion: "2"})
				gate.Deliver(gate.Held()[0])
				want(t, "a new one", "ADDED:b=1@3", again.next())
			})
		})
	}
}

func TestCancelledWatchHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		gate := &Gate{}
		ctx, cancel := context.WithCancel(WithGate(s.ctx, gate))
		w, err := s.Watch(ctx, "/configmaps", storage.ListOptions{Recursive: true, Predicate: all()})
		if err != nil {
			t.Fatal(err)
		}
		s.create("a", "1")
		cancel()
		want(t, "held at once", "", heldOf(gate))
		want(t, "shown", "end", seen{s, w}.next())
		want(t, "watchers left", 0, len(s.db.watchers)+len(gate.watchers))
	})
}

func TestUnreadableObjectIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		w := everything(s, nil)
		s.db.Load("/configmaps/a", []byte("rubbish"))
		want(t, "watch", "ERROR:InternalError", w.next())
		if _, err := s.get("a"); err == nil || apierrors.IsNotFound(err) {
			t.Errorf("get: %v", err)
		}
	})
}
