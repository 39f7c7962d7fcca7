package projection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// event is one version of one object on the server.
type event struct {
	key     Key
	version int
	uid     types.UID
	exists  bool
	// out: it exists without the label of the operator, and no watch sees it.
	out bool
}

// visible reports whether watches see an object.
func (e event) visible() bool { return e.exists && !e.out }

// server has objects of one kind. Its events reach the cache in their order, and late; the answers to our
// own writes may be earlier or later than their events.
type server struct {
	cache  *Cache
	events []event
	now    map[Key]event
	// answers are the answers to writes of ours that have not arrived. There is one at a time for each
	// object, as in a pass, and they arrive in any order.
	answers []event
	// told are the newest facts that reached the cache from watches that run, and from answers.
	told map[Key]event
	// changed are the objects whose owners were told of a change.
	changed map[Key]bool
	// wrong: they were told of none, or not of one.
	wrong bool
	// streams are all that were ever opened.
	streams []*fakeStream
}

// fakeStream brings events as far as the test says. A stopped one may bring some more.
type fakeStream struct {
	source
	to        sink
	delivered int
	synced    bool
	failed    func(context.Context, *toolscache.Reflector, error)
}

func newServer() *server {
	s := &server{now: map[Key]event{}, told: map[Key]event{}, changed: map[Key]bool{}}
	s.cache = newCache(Options{
		Names: Names{OwnerLabel: ownerLabel, Owner: ownerLabel}, Changed: func(_ string, key Key) { s.changed[key] = true },
	}, func(src source, to sink, failed func(context.Context, *toolscache.Reflector, error)) (func(context.Context), error) {
		s.streams = append(s.streams, &fakeStream{source: src, to: to, failed: failed})
		return func(context.Context) {}, nil
	})
	return s
}

const ownerLabel = "op.test/owner-id"

var widgets = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}

func (e event) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(widgets)
	u.SetNamespace(e.key.Namespace)
	u.SetName(e.key.Name)
	u.SetUID(e.uid)
	u.SetResourceVersion(strconv.Itoa(e.version))
	u.SetAnnotations(map[string]string{ownerLabel: "c/shop/a"})
	if !e.out {
		u.SetLabels(map[string]string{ownerLabel: "x"})
	}
	return u
}

func keyFor(namespace, name string) Key {
	return Key{widgets.GroupKind(), types.NamespacedName{Namespace: namespace, Name: name}}
}

// write changes, creates, deletes or releases an object.
func (s *server) write(key Key, remove, out bool) event {
	before := s.now[key]
	e := event{key: key, version: len(s.events) + 2, uid: before.uid, exists: !remove, out: out}
	if !before.exists {
		e.uid = types.UID(fmt.Sprintf("%s-%d", key.Name, e.version))
	}
	s.events = append(s.events, e)
	s.now[key] = e
	return e
}

// at is what there was after some of the events.
func (s *server) at(until int) map[Key]event {
	state := map[Key]event{}
	for _, e := range s.events[:until] {
		state[e.key] = e
	}
	return state
}

func (s *server) tell(e event) {
	if e.version > s.told[e.key].version {
		s.told[e.key] = e
	}
}

// runs reports whether a stream is that of a watch that was not stopped.
func (s *server) runs(f *fakeStream) bool {
	to, ok := f.to.(feed)
	return ok && s.cache.watches[to.w.scope] == to.w
}

// bring brings the next event of a stream, or all objects: at first, and after a gap. Such a list is not
// older than what the stream brought before, but may be older than what there is.
func (s *server) bring(f *fakeStream, gap, behind bool) {
	if !f.synced || gap {
		until := len(s.events)
		if behind {
			until = (f.delivered + until + 1) / 2
		}
		f.synced, f.delivered = true, until
		var objects []any
		for key, e := range s.at(until) {
			if e.visible() && scopeOf(f).covers(key) {
				objects = append(objects, s.entry(e))
			}
			if s.runs(f) && scopeOf(f).covers(key) {
				s.tell(e)
			}
		}
		f.to.replace(objects, strconv.Itoa(until+1))
		return
	}
	if f.delivered == len(s.events) {
		return
	}
	e := s.events[f.delivered]
	before := s.at(f.delivered)[e.key]
	f.delivered++
	if !scopeOf(f).covers(e.key) || !before.visible() && !e.visible() {
		return
	}
	if s.runs(f) {
		s.tell(e)
	}
	if e.visible() {
		f.to.add(s.entry(e))
	} else {
		f.to.remove(s.entry(e))
	}
}

// bringAndTell is bring. What changes by it has to be told to owners, and nothing else; at first, only what is
// gone.
func (s *server) bringAndTell(f *fakeStream, gap, behind bool, say func(string, ...any)) {
	clear(s.changed)
	before, initial := map[Key]string{}, !f.synced
	for _, key := range keys() {
		o, _ := s.cache.Get(key)
		before[key] = o.Version
	}
	s.bring(f, gap, behind)
	for _, key := range keys() {
		o, exists := s.cache.Get(key)
		if want := o.Version != before[key] && (!exists || !initial); want != s.changed[key] {
			say("%v was %q and is %q: told %t", key, before[key], o.Version, s.changed[key])
			s.wrong = true
		}
	}
}

func scopeOf(f *fakeStream) scope {
	return scope{GroupKind: widgets.GroupKind(), namespace: f.namespace}
}

func (s *server) entry(e event) *entry {
	return &entry{e.key, keep(s.cache.names.Of(e.object()), e.key)}
}

// arrive brings the answer to one of our writes.
func (s *server) arrive(i int) {
	e := s.answers[i]
	s.answers = slices.Delete(s.answers, i, i+1)
	if !s.watched(e.key) {
		s.note(e)
		return
	}
	s.tell(e)
	s.note(e)
}

func (s *server) note(e event) {
	if e.exists {
		s.cache.Note(e.object())
		return
	}
	s.cache.NoteGone(e.key, s.deleted(e))
}

// deleted is the version of the object that was deleted.
func (s *server) deleted(e event) string {
	return strconv.Itoa(s.at(e.version - 2)[e.key].version)
}

// watched reports whether a watch of an object runs.
func (s *server) watched(key Key) bool {
	for at := range s.cache.watches {
		if at.covers(key) {
			return true
		}
	}
	return false
}

// ours writes an object. We delete and release only what we know of, in the version that we know, and
// otherwise read it first.
func (s *server) ours(rng *rand.Rand, key Key) event {
	now, told := s.now[key], s.told[key]
	remove, out := false, false
	if now.exists && told.visible() && told.uid == now.uid {
		remove, out = rng.IntN(2) == 0, rng.IntN(4) == 0
	}
	if remove && now.version != told.version && s.watched(key) {
		s.tell(now)
		s.note(now)
	}
	e := s.write(key, remove, out && !remove)
	s.answers = append(s.answers, e)
	return e
}

func (s *server) pending(key Key) bool {
	return slices.ContainsFunc(s.answers, func(e event) bool { return e.key == key })
}

// settle lets time pass, and forgets what was told of objects whose watches ended with that.
func (s *server) settle(d time.Duration) {
	s.cache.mu.Lock() // what was read before is read before timers change it
	before := maps.Clone(s.cache.watches)
	s.cache.mu.Unlock()
	<-time.After(d)
	synctest.Wait()
	for at := range before {
		if s.cache.watches[at] != nil {
			continue
		}
		for key := range s.told {
			if at.covers(key) {
				delete(s.told, key)
			}
		}
	}
}

// check compares what the cache knows with what it was told.
func (s *server) check() error {
	if s.wrong {
		return errors.New("the owners were not told of what changed")
	}
	for _, key := range keys() {
		got, exists := s.cache.Get(key)
		want := s.told[key]
		if exists != want.visible() || exists && (got.UID != want.uid || got.Version != strconv.Itoa(want.version)) {
			return fmt.Errorf("the cache has %s in version %s (%t), want %+v", got.UID, got.Version, exists, want)
		}
	}
	return nil
}

func keys() []Key { return []Key{keyFor("shop", "a"), keyFor("shop", "b"), keyFor("mall", "a")} }

// TestCacheModel: whatever the order in which events and answers arrive, and watches begin and end, the cache
// answers with the newest that it was told by watches that run. Watches that somebody needs run; those that
// nobody needs end.
func TestCacheModel(t *testing.T) {
	for seed := range uint64(3_000) {
		synctest.Test(t, func(t *testing.T) { //nolint:paralleltest // a bubble each
			modelRun(t, rand.New(rand.NewPCG(seed, 1)), seed)
		})
	}
}

func modelRun(t *testing.T, rng *rand.Rand, seed uint64) {
	t.Helper()
	s := newServer()
	scopes := []scope{{GroupKind: widgets.GroupKind()}}
	if seed%2 == 1 { // the user may not watch all namespaces
		scopes = []scope{{GroupKind: widgets.GroupKind(), namespace: "shop"}, {GroupKind: widgets.GroupKind(), namespace: "mall"}}
	}
	uses := map[User]map[scope]bool{{UID: "one"}: {}, {UID: "two"}: {}}
	var history []string
	say := func(format string, args ...any) { history = append(history, fmt.Sprintf(format, args...)) }
	for range 60 {
		s.step(rng, scopes, uses, say)
		if err := s.check(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, history)
		}
		for user, used := range uses {
			for at := range used {
				if w := s.cache.watches[at]; w == nil || !w.users[user] {
					t.Fatalf("seed %d: nothing watches %v for %v\n%s", seed, at, user, history)
				}
			}
		}
	}
	for user := range uses {
		s.join(t, user, scopes)
	}
	s.drain()
	if err := s.check(); err != nil {
		t.Fatalf("seed %d: at the end %v\n%s", seed, err, history)
	}
	for _, f := range s.streams {
		if s.runs(f) {
			if seed%4 < 2 {
				f.to.bookmark(strconv.Itoa(f.delivered + 1))
			} else {
				s.bring(f, true, false)
			}
		}
	}
	for _, key := range keys() {
		if got, exists := s.cache.Get(key); exists != s.now[key].visible() || exists && got.Version != strconv.Itoa(s.now[key].version) {
			t.Fatalf("seed %d: at the end the cache has %s in version %s (%t), and the server %+v\n%s", seed, key, got.Version, exists, s.now[key], history)
		}
	}
	if n := len(s.cache.ours); n != 0 {
		t.Fatalf("seed %d: %d writes are still remembered after their events\n%s", seed, n, history)
	}
	for user := range uses {
		s.cache.Forget(user.UID)
	}
	s.settle(2 * time.Minute)
	for _, key := range keys() {
		s.cache.Note(s.write(key, false, false).object()) // an answer after all
	}
	if n := len(s.cache.watches) + len(s.cache.seen) + len(s.cache.ours) + len(s.cache.narrow); n != 0 {
		t.Fatalf("seed %d: %d watches or objects are left without users\n%s", seed, n, history)
	}
}

// join has a user use scopes.
func (s *server) join(t *testing.T, user User, scopes []scope) {
	t.Helper()
	for _, at := range scopes {
		if _, err := s.cache.join(user, at, source{kind: widgets}); err != nil {
			t.Fatal(err)
		}
	}
}

// drain brings all that has not arrived.
func (s *server) drain() {
	for len(s.answers) > 0 {
		s.arrive(0)
	}
	for _, f := range s.streams {
		for s.runs(f) && (!f.synced || f.delivered < len(s.events)) {
			s.bring(f, false, false)
		}
	}
}

// step does one thing.
func (s *server) step(rng *rand.Rand, scopes []scope, uses map[User]map[scope]bool, say func(string, ...any)) {
	key := keys()[rng.IntN(3)]
	user := []User{{UID: "one"}, {UID: "two"}}[rng.IntN(2)]
	at := scopes[rng.IntN(len(scopes))]
	switch n := rng.IntN(14); {
	case n < 2:
		say("others: %+v", s.write(key, rng.IntN(3) == 0 && s.now[key].exists, rng.IntN(8) == 0))
	case n < 4 && !s.pending(key):
		say("we: %+v", s.ours(rng, key))
	case n < 6 && len(s.answers) > 0:
		i := rng.IntN(len(s.answers))
		say("answer: %+v", s.answers[i])
		s.arrive(i)
	case n == 13 && !s.pending(key) && s.watched(key) && s.now[key].exists && s.told[key].visible():
		say("%v is believed gone, and found", key)
		s.cache.NoteGone(key, strconv.Itoa(s.told[key].version))
		s.tell(s.now[key])
		s.note(s.now[key])
	case n == 6:
		say("%s uses %v", user.UID, at)
		_, _ = s.cache.join(user, at, source{kind: widgets})
		uses[user][at] = true
	case n == 7:
		say("%s keeps nothing but %v", user.UID, key)
		s.cache.Keep(user, []Key{key})
		for at := range uses[user] {
			if !at.covers(key) && at.namespace != "" {
				delete(uses[user], at)
			}
		}
	case n == 8:
		say("%s is gone", user.UID)
		s.cache.Forget(user.UID)
		clear(uses[user])
	case n == 9:
		say("time passes")
		s.settle(40 * time.Second)
	case len(s.streams) > 0:
		f := s.streams[rng.IntN(len(s.streams))]
		gap := rng.IntN(8) == 0
		say("stream of %q (runs: %t), gap %t, from %d of %d", f.namespace, s.runs(f), gap, f.delivered, len(s.events))
		s.bringAndTell(f, gap, rng.IntN(2) == 0, say)
		if rng.IntN(4) == 0 {
			say("bookmark")
			f.to.bookmark(strconv.Itoa(f.delivered + 1))
		}
	}
}

// TestNarrowBesideAll: what the watch of a namespace sees stays known when one of all namespaces ends, which
// another user began at the same time and may not have.
func TestNarrowBesideAll(t *testing.T) {
	t.Parallel()
	s := newServer()
	key := keyFor("shop", "a")
	s.join(t, User{UID: "one"}, []scope{{GroupKind: widgets.GroupKind(), namespace: "shop"}})
	s.write(key, false, false)
	s.bring(s.streams[0], false, false)
	s.join(t, User{UID: "two"}, []scope{{GroupKind: widgets.GroupKind()}})
	s.cache.narrowTo(widgets.GroupKind())
	if _, found := s.cache.Get(key); !found {
		t.Error("the object is not known any more, and its watch runs")
	}
}

// TestGoneKind: a kind that is no longer served is not asked for any more when nobody needs it, without a delay.
func TestGoneKind(t *testing.T) {
	t.Parallel()
	s := newServer()
	gone := fmt.Errorf("failed to list: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, ""))
	s.join(t, User{UID: "one"}, []scope{{GroupKind: widgets.GroupKind()}})
	s.streams[0].failed(t.Context(), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "", nil))
	s.cache.Forget("one")
	if n := s.cache.Watched(); n != 1 {
		t.Fatalf("%d watches, want one that ends after a while", n)
	}
	s.join(t, User{UID: "two"}, []scope{{GroupKind: widgets.GroupKind()}})
	s.bring(s.streams[0], false, false)
	s.streams[0].failed(t.Context(), reflector(), gone)
	if n := s.cache.Watched(); n != 1 {
		t.Fatalf("%d watches, want that of a component that needs the kind", n)
	}
	s.cache.Forget("two")
	s.streams[0].failed(t.Context(), reflector(), gone)
	if n := s.cache.Watched(); n != 0 {
		t.Errorf("%d watches of a kind that nobody needs and that is not served", n)
	}
}

// TestUnservedKind: if the API server does not serve a kind any more, those who wait for its objects get an error at once. The
// next one who needs the kind starts a new watch.
func TestUnservedKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		all := scope{GroupKind: widgets.GroupKind()}
		told := make(chan error, 1)
		go func() { told <- s.cache.follow(t.Context(), User{UID: "one"}, all, source{kind: widgets}) }()
		synctest.Wait()
		s.streams[0].failed(t.Context(), reflector(), apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, ""))
		if err := <-told; !meta.IsNoMatchError(err) {
			t.Errorf("told: %v", err)
		}
		s.join(t, User{UID: "one"}, []scope{all})
		if n := len(s.streams); n != 2 {
			t.Errorf("%d streams, want a new one", n)
		}
	})
}

// reflector is one that does nothing.
func reflector() *toolscache.Reflector {
	return toolscache.NewReflectorWithOptions(&toolscache.ListWatch{}, nil, nil, toolscache.ReflectorOptions{Name: "test"})
}
