package projection

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// event is one version of one object on the server.
type event struct {
	key     string
	version int
	uid     types.UID
	exists  bool
}

// server has objects of one kind. Its events reach the cache in their order, and late; the answers to our
// own writes may be earlier or later than their events.
type server struct {
	cache     *Cache
	events    []event
	delivered int
	now       map[string]event
	// answer is the answer to a write of ours that has not arrived; there is one at a time, as in a pass.
	answer *event
	// told are the newest facts that reached the cache.
	told map[string]event
}

func newServer() *server {
	return &server{
		cache: &Cache{
			changed: func(string, Key) {}, objects: map[Key]known{}, horizon: map[schema.GroupKind]string{},
			kinds: map[schema.GroupKind]toolscache.ResourceEventHandlerRegistration{},
		},
		now: map[string]event{}, told: map[string]event{},
	}
}

var widgets = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}

func (e event) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(widgets)
	u.SetNamespace("shop")
	u.SetName(e.key)
	u.SetUID(e.uid)
	u.SetResourceVersion(strconv.Itoa(e.version))
	return u
}

func keyFor(name string) Key {
	return Key{widgets.GroupKind(), types.NamespacedName{Namespace: "shop", Name: name}}
}

// write changes, creates or deletes an object.
func (s *server) write(key string, remove bool) event {
	before := s.now[key]
	e := event{key: key, version: len(s.events) + 1, uid: before.uid, exists: !remove}
	if !before.exists {
		e.uid = types.UID(fmt.Sprintf("%s-%d", key, e.version))
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

// deliver brings the next event to the cache.
func (s *server) deliver() {
	e := s.events[s.delivered]
	s.delivered++
	obj := &entry{keyFor(e.key), s.cache.names.Of(e.object())}
	if s.tell(e); e.exists {
		s.cache.see(obj, false)
		return
	}
	s.cache.unsee(obj)
}

// arrive brings the answer to our write.
func (s *server) arrive() {
	e := *s.answer
	s.answer = nil
	if s.tell(e); e.exists {
		s.cache.Note(e.object())
		return
	}
	s.cache.NoteGone(keyFor(e.key), e.uid)
}

// TestCacheModel: whatever the order in which events and answers arrive, the cache answers with the newest
// that it was told.
func TestCacheModel(t *testing.T) {
	for seed := range uint64(3_000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := newServer()
		var history []string
		for range 40 {
			key := string(rune('a' + rng.IntN(2)))
			switch n := rng.IntN(8); {
			case n < 2:
				history = append(history, fmt.Sprintf("others: %+v", s.write(key, rng.IntN(3) == 0 && s.now[key].exists)))
			case n < 4 && s.answer == nil:
				// We delete only what we know of, and write what we know or believe absent.
				remove := rng.IntN(2) == 0 && s.now[key].exists && s.told[key].exists && s.told[key].uid == s.now[key].uid
				s.answer = new(s.write(key, remove))
				history = append(history, fmt.Sprintf("we: %+v", *s.answer))
			case n < 6 && s.answer != nil:
				history = append(history, fmt.Sprintf("answer: %+v", *s.answer))
				s.arrive()
			case s.delivered < len(s.events):
				history = append(history, fmt.Sprintf("event: %+v", s.events[s.delivered]))
				s.deliver()
			}
			for _, key := range []string{"a", "b"} {
				got, exists := s.cache.Get(keyFor(key))
				want := s.told[key]
				if exists != want.exists || exists && (got.UID != want.uid || got.Version != strconv.Itoa(want.version)) {
					t.Fatalf("seed %d: the cache has %s in version %s (%t), want %+v\n%s", seed, got.UID, got.Version, exists, want, history)
				}
			}
		}
		for s.answer != nil || s.delivered < len(s.events) {
			if s.delivered < len(s.events) {
				s.deliver()
			} else {
				s.arrive()
			}
		}
		for key, k := range s.cache.objects {
			if k.noted != nil || k.gone != "" {
				t.Fatalf("seed %d: %s is still remembered after its event: %+v\n%s", seed, key, k, history)
			}
		}
	}
}
