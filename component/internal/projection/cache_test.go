package projection

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

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
}

// server has objects of one kind. Its events reach the cache in their order, and late; the answers to our
// own writes may be earlier or later than their events.
type server struct {
	cache  *Cache
	events []event
	now    map[Key]event
	// answer is the answer to a write of ours that has not arrived; there is one at a time, as in a pass.
	answer *event
	// told are the newest facts that reached the cache from watches that run, and from answers.
	told map[Key]event
	// streams are all that were ever opened.
	streams []*fakeStream
}

// fakeStream brings events as far as the test says. A stopped one may bring some more.
type fakeStream struct {
	source
	to        sink
	delivered int
	synced    bool
}

func newServer() *server {
	s := &server{now: map[Key]event{}, told: map[Key]event{}}
	s.cache = newCache(Options{Changed: func(string, Key) {}}, func(src source, to sink, _ func(context.Context, *toolscache.Reflector, error)) (func(context.Context), error) {
		s.streams = append(s.streams, &fakeStream{source: src, to: to})
		return func(context.Context) {}, nil
	})
	return s
}

var widgets = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}

func (e event) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(widgets)
	u.SetNamespace(e.key.Namespace)
	u.SetName(e.key.Name)
	u.SetUID(e.uid)
	u.SetResourceVersion(strconv.Itoa(e.version))
	return u
}

func keyFor(namespace, name string) Key {
	return Key{widgets.GroupKind(), types.NamespacedName{Namespace: namespace, Name: name}}
}

// write changes, creates or deletes an object.
func (s *server) write(key Key, remove bool) event {
	before := s.now[key]
	e := event{key: key, version: len(s.events) + 2, uid: before.uid, exists: !remove}
	if !before.exists {
		e.uid = types.UID(fmt.Sprintf("%s-%d", key.Name, e.version))
	}
	s.events = append(s.events, e)
	s.now[key] = e
	return e
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

// bring brings the next event of a stream, or all objects: at first, and after a gap.
func (s *server) bring(f *fakeStream, gap bool) {
	if !f.synced || gap {
		f.synced, f.delivered = true, len(s.events)
		var objects []any
		for key, e := range s.now {
			if e.exists && scopeOf(f).covers(key) {
				objects = append(objects, s.entry(e))
			}
			if s.runs(f) && scopeOf(f).covers(key) {
				s.tell(e)
			}
		}
		f.to.replace(objects, strconv.Itoa(len(s.events)+1))
		return
	}
	if f.delivered == len(s.events) {
		return
	}
	e := s.events[f.delivered]
	f.delivered++
	if !scopeOf(f).covers(e.key) {
		return
	}
	if s.runs(f) {
		s.tell(e)
	}
	if e.exists {
		f.to.add(s.entry(e))
	} else {
		f.to.remove(s.entry(e))
	}
}

func scopeOf(f *fakeStream) scope {
	return scope{GroupKind: widgets.GroupKind(), namespace: f.namespace}
}

func (s *server) entry(e event) *entry {
	return &entry{e.key, keep(s.cache.names.Of(e.object()), e.key)}
}

// arrive brings the answer to our write.
func (s *server) arrive() {
	e := *s.answer
	s.answer = nil
	if s.tell(e); e.exists {
		s.cache.Note(e.object())
		return
	}
	s.cache.NoteGone(e.key, e.uid)
}

// settle lets time pass, and forgets what was told of objects whose watches ended with that.
func (s *server) settle(d time.Duration) {
	before := maps.Clone(s.cache.watches)
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
	for _, key := range keys() {
		got, exists := s.cache.Get(key)
		want := s.told[key]
		if exists != want.exists || exists && (got.UID != want.uid || got.Version != strconv.Itoa(want.version)) {
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
	if n := len(s.cache.ours); n != 0 {
		t.Fatalf("seed %d: %d writes are still remembered after their events\n%s", seed, n, history)
	}
	for user := range uses {
		s.cache.Forget(user.UID)
	}
	s.settle(2 * time.Minute)
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
	if s.answer != nil {
		s.arrive()
	}
	for _, f := range s.streams {
		for s.runs(f) && (!f.synced || f.delivered < len(s.events)) {
			s.bring(f, false)
		}
	}
}

// step does one thing.
func (s *server) step(rng *rand.Rand, scopes []scope, uses map[User]map[scope]bool, say func(string, ...any)) {
	key := keys()[rng.IntN(3)]
	user := []User{{UID: "one"}, {UID: "two"}}[rng.IntN(2)]
	at := scopes[rng.IntN(len(scopes))]
	switch n := rng.IntN(13); {
	case n < 2:
		say("others: %+v", s.write(key, rng.IntN(3) == 0 && s.now[key].exists))
	case n < 4 && s.answer == nil:
		// We delete only what we know of, and write what we know or believe absent.
		remove := rng.IntN(2) == 0 && s.now[key].exists && s.told[key].exists && s.told[key].uid == s.now[key].uid
		s.answer = new(s.write(key, remove))
		say("we: %+v", *s.answer)
	case n < 6 && s.answer != nil:
		say("answer: %+v", *s.answer)
		s.arrive()
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
		s.bring(f, gap)
	}
}
