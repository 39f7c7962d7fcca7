package store

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// A Gate holds back the watch events of one client until somebody delivers them one by
// one. The zero value is ready. Events that make up a watch's initial state are not held.
type Gate struct {
	mu       sync.Mutex
	watchers []*watcher
	opened   int // watches, ever
	// Wake, if set before use, is called after an event came to be held.
	Wake func()
}

// Held is an event that waits at a gate.
type Held struct {
	w *watcher
	// Watch numbers the watches of the gate in the order they were opened.
	Watch int
	// Prefix is what the watch covers: "/secrets/" or "/demo.dev/databases/ns/".
	Prefix string
	// Change is the next of the watch; Behind counts those waiting, this one included.
	Change Change
	Behind int
}

type gateKey struct{}

// WithGate returns a context whose watches g holds back.
func WithGate(ctx context.Context, g *Gate) context.Context {
	return context.WithValue(ctx, gateKey{}, g)
}

// Held returns the next event of each watch that has one, ordered by what the watches cover
// and, between equals, by when they were opened.
func (g *Gate) Held() []Held {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []Held
	for _, w := range g.watchers {
		if len(w.held) > 0 && w.ctx.Err() == nil {
			out = append(out, Held{w: w, Watch: w.number, Prefix: w.prefix, Change: w.held[0], Behind: len(w.held)})
		}
	}
	slices.SortStableFunc(out, func(a, b Held) int { return strings.Compare(a.Prefix, b.Prefix) })
	return out
}

// Deliver lets an event through, and again as often as extra says: a watch may repeat itself.
func (g *Gate) Deliver(h Held, extra int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(h.w.held) == 0 || h.w.held[0].Rev != h.Change.Rev {
		return
	}
	h.w.held = h.w.held[1:]
	for range extra + 1 {
		h.w.push(h.Change)
	}
}

// Break ends the watches that match, with 410 Gone if gone is set and as a closed
// connection otherwise. What they held is lost, as it is for a client that must list again.
func (g *Gate) Break(match func(prefix string) bool, gone bool) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, w := range g.watchers {
		if match(w.prefix) {
			n++
			w.held = nil
			w.end(gone)
		}
	}
	return n
}

// watcher is one watch.
type watcher struct {
	prefix string
	exact  bool
	gate   *Gate // nil: nothing is held
	number int
	held   []Change // guarded by gate.mu

	mu    sync.Mutex
	queue []Change
	gone  bool

	wake   chan struct{}
	out    chan watch.Event
	ctx    context.Context
	cancel context.CancelFunc
}

func (w *watcher) Stop()                          { w.cancel() }
func (w *watcher) ResultChan() <-chan watch.Event { return w.out }

func (w *watcher) covers(key string) bool {
	return key == w.prefix || !w.exact && strings.HasPrefix(key, w.prefix)
}

// receive takes a change from the DB, whose lock is held.
func (w *watcher) receive(c Change) {
	if w.gate == nil {
		w.push(c)
		return
	}
	w.gate.mu.Lock()
	w.held = append(w.held, c)
	w.gate.mu.Unlock()
	if w.gate.Wake != nil {
		w.gate.Wake()
	}
}

func (w *watcher) push(c Change) {
	w.mu.Lock()
	w.queue = append(w.queue, c)
	w.mu.Unlock()
	w.signal()
}

func (w *watcher) end(gone bool) {
	w.mu.Lock()
	w.gone = gone
	w.mu.Unlock()
	if !gone {
		w.cancel()
	}
	w.signal()
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Watch sends the present state first where that is asked for, then each change.
func (s *resource) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	prefix, err := storage.PrepareKey(s.prefix, key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	from, err := versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &watcher{prefix: prefix, exact: !opts.Recursive, wake: make(chan struct{}, 1), out: make(chan watch.Event, 16)}
	w.gate, _ = ctx.Value(gateKey{}).(*Gate)
	w.ctx, w.cancel = context.WithCancel(ctx)
	db := From(ctx)
	wantState := opts.SendInitialEvents != nil && *opts.SendInitialEvents ||
		opts.SendInitialEvents == nil && from == 0
	first, rev, err := db.watch(w, int64(from), wantState)
	if err != nil {
		w.cancel()
		return nil, err
	}
	f := feed{resource: s, w: w, only: opts.Predicate}
	bookmark := wantState && opts.SendInitialEvents != nil && opts.Predicate.AllowWatchBookmarks
	go func() {
		defer close(w.out)
		defer db.unwatch(w)
		f.run(first, rev, bookmark)
	}()
	return w, nil
}

// watch enters a watcher and returns what it must be told first: the present state, or what
// happened after revision from.
func (d *DB) watch(w *watcher, from int64, state bool) (first []Change, rev int64, err error) {
	d.lock()
	defer d.mu.Unlock()
	switch {
	case from != 0 && from < d.compacted:
		return nil, 0, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, d.compacted))
	case from > d.rev:
		return nil, 0, tooLarge(from, d.rev)
	}
	if state {
		for key, e := range d.entries {
			if w.covers(key) {
				first = append(first, Change{Rev: e.rev, Key: key, After: e.data})
			}
		}
		slices.SortFunc(first, func(a, b Change) int { return strings.Compare(a.Key, b.Key) })
	} else {
		for _, c := range d.history {
			if c.Rev > from && w.covers(c.Key) {
				first = append(first, c)
			}
		}
	}
	if g := w.gate; g != nil {
		g.mu.Lock()
		g.opened++
		w.number = g.opened
		g.watchers = append(g.watchers, w)
		if !state { // what was missed waits like all that follows
			w.held, first = first, nil
		}
		g.mu.Unlock()
	}
	d.watchers = append(d.watchers, w)
	return first, d.rev, nil
}

func (d *DB) unwatch(w *watcher) {
	d.mu.Lock()
	d.watchers = slices.DeleteFunc(d.watchers, func(o *watcher) bool { return o == w })
	d.mu.Unlock()
	if g := w.gate; g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.watchers = slices.DeleteFunc(g.watchers, func(o *watcher) bool { return o == w })
	}
}

// feed turns changes into the events that one watch shows.
type feed struct {
	*resource
	w    *watcher
	only storage.SelectionPredicate
}

func (f feed) run(first []Change, rev int64, bookmark bool) {
	if !f.sendAll(first) || bookmark && !f.sendBookmark(rev) {
		return
	}
	for {
		f.w.mu.Lock()
		next, gone := f.w.queue, f.w.gone
		f.w.queue = nil
		f.w.mu.Unlock()
		if !f.sendAll(next) {
			return
		}
		if gone {
			f.send(watch.Event{Type: watch.Error, Object: &metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
				Message: "too old resource version",
			}})
			return
		}
		select {
		case <-f.w.wake:
		case <-f.w.ctx.Done():
			return
		}
	}
}

func (f feed) sendAll(changes []Change) bool {
	for _, c := range changes {
		e, ok, err := f.event(c)
		if err != nil {
			e = watch.Event{Type: watch.Error, Object: &apierrors.NewInternalError(err).ErrStatus}
			ok = true
		}
		if ok && !f.send(e) {
			return false
		}
	}
	return true
}

// sendBookmark says that the initial state is complete.
func (f feed) sendBookmark(rev int64) bool {
	obj := f.newObject()
	if versioner.UpdateObject(obj, uint64(rev)) != nil || storage.AnnotateInitialEventsEndBookmark(obj) != nil {
		return false
	}
	return f.send(watch.Event{Type: watch.Bookmark, Object: obj})
}

func (f feed) send(e watch.Event) bool {
	select {
	case f.w.out <- e:
		return true
	case <-f.w.ctx.Done():
		return false
	}
}

// event returns what a change is for this watch: an object that begins to match a selector
// is added, one that ceases to is deleted.
func (f feed) event(c Change) (watch.Event, bool, error) {
	now, err := f.matching(c.After, c.Rev)
	if err != nil {
		return watch.Event{}, false, err
	}
	before, err := f.matching(c.Before, c.Rev)
	if err != nil {
		return watch.Event{}, false, err
	}
	switch {
	case now != nil && before != nil:
		return watch.Event{Type: watch.Modified, Object: now}, true, nil
	case now != nil:
		return watch.Event{Type: watch.Added, Object: now}, true, nil
	case before != nil:
		return watch.Event{Type: watch.Deleted, Object: before}, true, nil
	}
	return watch.Event{}, false, nil
}

// matching decodes an object; nil means that there is none or that the watch does not
// select it.
func (f feed) matching(data []byte, rev int64) (runtime.Object, error) {
	if data == nil {
		return nil, nil
	}
	obj := f.newObject()
	if err := f.decode(data, rev, obj); err != nil {
		return nil, err
	}
	if ok, err := f.only.Matches(obj); err != nil || !ok {
		return nil, err
	}
	return obj, nil
}
