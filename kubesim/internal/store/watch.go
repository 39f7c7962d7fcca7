package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// watcher is one watch.
type watcher struct {
	prefix string
	exact  bool
	after  int64 // revisions up to this one are not shown
	gate   *Gate // nil: nothing is held
	number int
	held   []Change // guarded by gate.mu

	mu    sync.Mutex
	queue []Change
	gone  bool

	wake   chan struct{}
	out    chan watch.Event
	done   <-chan struct{} // closed when the client has gone or the watch was stopped
	cancel context.CancelFunc
}

func (w *watcher) Stop()                          { w.cancel() }
func (w *watcher) ResultChan() <-chan watch.Event { return w.out }

// ended tells whether nobody takes events any more.
func (w *watcher) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *watcher) covers(key string) bool {
	return key == w.prefix || !w.exact && strings.HasPrefix(key, w.prefix)
}

// receive takes a change from the DB, whose lock is held.
func (w *watcher) receive(c Change) {
	if c.Rev <= w.after {
		return
	}
	if w.gate == nil {
		w.push(c)
		return
	}
	w.gate.hold(w, c)
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

// take returns what is queued and whether the watch has come to its end.
func (w *watcher) take() (changes []Change, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changes, w.queue = w.queue, nil
	return changes, w.gone
}

// Watch sends the present state first where that is asked for, then each change. There are
// no bookmarks but the one that ends the present state: revisions are forgotten only when
// somebody says so, thus no client needs to be told of new ones.
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
	stopped, cancel := context.WithCancel(ctx)
	w.done, w.cancel = stopped.Done(), cancel
	state := from == 0
	if opts.SendInitialEvents != nil {
		state = *opts.SendInitialEvents
	}
	db := From(ctx)
	first, rev, err := db.watch(w, int64(from), state)
	f := feed{resource: s, w: w, only: opts.Predicate}
	if err != nil {
		go f.fail(err)
		return w, nil //nolint:nilerr // the watch itself tells its client
	}
	go func() {
		defer close(w.out)
		defer db.unwatch(w)
		f.run(first, rev, state && opts.SendInitialEvents != nil && opts.Predicate.AllowWatchBookmarks)
	}()
	return w, nil
}

// watch enters a watcher and returns what it must be told first: the present state, or what
// happened after revision from; 0 means from now on.
func (d *DB) watch(w *watcher, from int64, state bool) (first []Change, rev int64, err error) {
	d.lock()
	defer d.mu.Unlock()
	if state && from > d.rev {
		return nil, 0, storage.NewTooLargeResourceVersionError(uint64(from), uint64(d.rev), retrySeconds)
	}
	var missed []Change
	switch {
	case state:
		for key, e := range d.entries {
			if w.covers(key) {
				first = append(first, Change{Rev: e.rev, Key: key, After: e.data, after: e})
			}
		}
		slices.SortFunc(first, func(a, b Change) int { return strings.Compare(a.Key, b.Key) })
	case from != 0:
		for _, c := range d.history[after(d.history, from):] {
			if w.covers(c.Key) {
				missed = append(missed, c)
			}
		}
	}
	w.after = from
	d.watchers = append(d.watchers, w)
	if w.gate == nil {
		return append(first, missed...), d.rev, nil
	}
	w.gate.enter(w, missed)
	return first, d.rev, nil
}

func (d *DB) unwatch(w *watcher) {
	d.mu.Lock()
	d.watchers = slices.DeleteFunc(d.watchers, func(o *watcher) bool { return o == w })
	d.mu.Unlock()
	if w.gate != nil {
		w.gate.leave(w)
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
		next, gone := f.w.take()
		if !f.sendAll(next) {
			return
		}
		if gone {
			f.sendError(apierrors.NewResourceExpired("too old resource version"))
			return
		}
		select {
		case <-f.w.wake:
		case <-f.w.done:
			return
		}
	}
}

// fail is a watch that cannot be. The real server lets it begin and tells by an event.
func (f feed) fail(err error) {
	defer close(f.w.out)
	defer f.w.cancel()
	f.sendError(err)
}

func (f feed) sendError(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		status = apierrors.NewInternalError(err)
	}
	return f.send(watch.Event{Type: watch.Error, Object: &status.ErrStatus})
}

func (f feed) sendAll(changes []Change) bool {
	for _, c := range changes {
		e, ok, err := f.event(c)
		switch {
		case err != nil && !f.sendError(err), ok && !f.send(e):
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
	case <-f.w.done:
		return false
	}
}

// event returns what a change is for this watch: an object that begins to match a selector
// is added, one that ceases to is deleted.
func (f feed) event(c Change) (e watch.Event, ok bool, err error) {
	now, err := f.matching(c.after)
	if err != nil {
		return e, false, err
	}
	if now != nil && f.only.Empty() {
		kind := watch.Modified
		if c.Before == nil {
			kind = watch.Added
		}
		return watch.Event{Type: kind, Object: now}, true, nil
	}
	before, err := f.matching(c.before)
	switch {
	case err != nil:
		return e, false, err
	case now != nil && before != nil:
		return watch.Event{Type: watch.Modified, Object: now}, true, nil
	case now != nil:
		return watch.Event{Type: watch.Added, Object: now}, true, nil
	case before != nil: // what was deleted is shown as it was, with the revision of its end
		return watch.Event{Type: watch.Deleted, Object: before}, true, versioner.UpdateObject(before, uint64(c.Rev))
	}
	return e, false, nil
}

// matching decodes an object; nil means that there is none or that the watch does not
// select it.
func (f feed) matching(e entry) (runtime.Object, error) {
	if e.data == nil {
		return nil, nil
	}
	obj, err := f.object(e)
	if err != nil {
		return nil, err
	}
	if ok, err := f.only.Matches(obj); err != nil || !ok {
		return nil, err
	}
	return obj, nil
}
