package loop

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// memory is what a controller remembers of its objects between passes. Nothing in it
// decides what is true; losing it costs time, never correctness.
type memory struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*remembered
	// leading: this process works on objects.
	leading bool
	// standby are the objects to reconcile once this process leads. Until then its queue stays
	// empty, because nothing can be taken out of that again when an object is deleted.
	standby map[types.NamespacedName]queue
}

type remembered struct {
	// uid is the object's; a later object of the same name starts again.
	uid    types.UID
	ladder ladder
	window window
	// unwritten counts passes in a row whose result could not be written.
	unwritten int
	// conflicts counts passes in a row that worked on an old copy.
	conflicts int
	// conflictAt is the version that the last of these passes worked on.
	conflictAt string
	// contested is since when another has written to our part of the status in each pass; zero if none does.
	contested time.Time
	// delay is handed to the work queue for the failure just returned.
	delay time.Duration
	// own is the newest version that this process wrote, and of which UID.
	own    string
	ownUID types.UID
	// known is the newest version of which the API server itself has told this process, in its answer to a
	// write or to a read past the cache, and knownUID its UID.
	known    string
	knownUID types.UID
	// ended is a UID of which it said that there is no such object.
	ended types.UID
	// behindSince is when the process came to know what the cache may not show yet.
	behindSince time.Time
	// released is the UID whose finalizer this process removed.
	released types.UID
	// finalized is the UID that this process put its finalizer on, and when.
	finalized   types.UID
	finalizedAt time.Time
	// vanished are the objects of this name that went although the finalizer was on and that
	// are to be cleaned up, oldest first.
	vanished []*vanished
	// gone: the watch showed the object's deletion, and no more event about it will come.
	gone bool
	// shown is what the status said last.
	shown shown
	// applied is the generation of the last pass that succeeded, 0 for none; nil before this
	// process reported on the object. recalled: it is what the status of the first copy said.
	applied  *int64
	recalled bool
	// touched is the newest version in which the status was another one.
	touched string
	// unwritable: an event says that the status cannot be written.
	unwritable bool
	// started is when the pass under way began; zero when none is.
	started  time.Time
	measured measured
	// ledger is what the author wrote.
	ledger ledger
}

var _ workqueue.TypedRateLimiter[reconcile.Request] = (*memory)(nil)

func newMemory() *memory {
	return &memory{objects: map[types.NamespacedName]*remembered{}, standby: map[types.NamespacedName]queue{}}
}

// with runs f on what is remembered of key.
func (m *memory) with(key types.NamespacedName, f func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.of(key))
}

// of returns what is remembered of key. The caller holds the lock.
func (m *memory) of(key types.NamespacedName) *remembered {
	r, ok := m.objects[key]
	if !ok {
		r = &remembered{}
		m.objects[key] = r
	}
	return r
}

// meet forgets the failures of an earlier object of the same name.
func (r *remembered) meet(uid types.UID) {
	if r.uid != uid {
		r.uid, r.gone, r.unwritable, r.applied, r.recalled = uid, false, false, nil, false
		r.shown.forget()
		r.measured.generation = 0
		r.startAgain()
	}
}

// startAgain forgets failures.
func (r *remembered) startAgain() {
	r.unwritten, r.conflicts = 0, 0
	r.ladder = ladder{events: r.ladder.events, seen: r.ladder.seen}
}

// event notes that an event for key goes into the queue, and reports whether it may: not in a process
// that does not lead.
func (m *memory) event(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.leading {
		return false
	}
	r := m.of(key)
	r.ladder.event()
	if r.measured.queued.IsZero() {
		r.measured.queued = time.Now()
	}
	return true
}

// drop forgets an object that is gone. What was met is kept until its deletion was seen, and
// what vanished until it is cleaned up.
func (m *memory) drop(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.objects[key]
	if !ok {
		return
	}
	r.shown.forget()
	r.measured.queued = time.Time{}
	if len(r.vanished) > 0 {
		return
	}
	if r.ledger = (ledger{}); r.uid == "" || r.gone {
		delete(m.objects, key)
	}
}

// wrote notes the version that a write of ours produced.
func (m *memory) wrote(obj client.Object, version string) {
	m.with(client.ObjectKeyFromObject(obj), func(r *remembered) {
		if r.ownUID == obj.GetUID() && older(version, r.own) {
			return
		}
		r.own, r.ownUID = version, obj.GetUID()
		r.know(version, obj.GetUID())
	})
}

// saw notes the version of an object that was read past the cache, and which generation was applied, unless somebody
// else wrote that. An older copy may have said less, and a pass may have succeeded with it.
func (m *memory) saw(obj client.Object, owner string) {
	m.with(client.ObjectKeyFromObject(obj), func(r *remembered) {
		r.know(obj.GetResourceVersion(), obj.GetUID())
		said, ours := appliedBy(obj, owner)
		if !ours || r.uid != obj.GetUID() {
			return
		}
		if r.applied != nil && !r.recalled {
			said = max(said, *r.applied)
		}
		r.applied, r.recalled = new(said), false
	})
}

// appliedOther reports whether obj says that a generation was applied of which this process knows nothing.
func (m *memory) appliedOther(obj client.Object, generation int64) bool {
	var is bool
	m.with(client.ObjectKeyFromObject(obj), func(r *remembered) {
		is = r.uid == obj.GetUID() && r.applied != nil && (*r.applied < generation || r.recalled && *r.applied > generation)
	})
	return is
}

// sawNone notes that the API server has no object with this UID any more.
func (m *memory) sawNone(key types.NamespacedName, uid types.UID) {
	m.with(key, func(r *remembered) {
		if r.ended != uid {
			r.ended, r.behindSince = uid, time.Now()
		}
	})
}

// know notes a version that the API server has.
func (r *remembered) know(version string, uid types.UID) {
	if r.knownUID == uid && !older(r.known, version) {
		return
	}
	r.known, r.knownUID, r.behindSince = version, uid, time.Now()
}

// doubtful reports whether a copy has to be compared with what the API server has: the last pass over the object met a
// conflict, and nothing shows that this copy is a newer one, or as new as this process.
func (m *memory) doubtful(obj client.Object) bool {
	var is bool
	m.with(client.ObjectKeyFromObject(obj), func(r *remembered) {
		is = r.uid == obj.GetUID() && r.conflicts > 0 && (r.conflictAt == obj.GetResourceVersion() || r.knownUID != obj.GetUID())
	})
	return is
}

// proven reports whether a copy that is not [memory.stale] is known to be no older than this process. A new one
// has what its cache shows, and that may be behind what another process did last.
func (m *memory) proven(obj client.Object) bool {
	var is bool
	m.with(client.ObjectKeyFromObject(obj), func(r *remembered) { is = r.knownUID == obj.GetUID() })
	return is
}

// finalize notes that this process puts its finalizer on uid.
func (m *memory) finalize(key types.NamespacedName, uid types.UID) {
	m.with(key, func(r *remembered) { r.finalized, r.finalizedAt = uid, time.Now() })
}

// statusWritten notes that the status of an object that is known was written, by anyone.
func (m *memory) statusWritten(obj client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, known := m.objects[client.ObjectKeyFromObject(obj)]; known {
		r.touched = obj.GetResourceVersion()
	}
}

// touched reports whether another wrote obj's status after our own last write. Even if it is what we
// would have written, it is not ours.
func (m *memory) touched(obj client.Object) bool {
	var is bool
	m.with(client.ObjectKeyFromObject(obj), func(r *remembered) {
		is = r.touched != "" && r.ownUID == obj.GetUID() && older(r.own, r.touched)
	})
	return is
}

// release notes that the finalizer of uid is removed: its passes are over.
func (m *memory) release(key types.NamespacedName, uid types.UID) {
	m.with(key, func(r *remembered) {
		r.released, r.behindSince = uid, time.Now()
		r.shown.forget()
	})
}

// stale reports whether obj, as read from the cache, is older than what the API server is known to have, such as our
// own last write, and how long the cache has lagged behind.
func (m *memory) stale(obj client.Object, finalizer string) (bool, time.Duration) {
	var behind bool
	var since time.Duration
	m.with(client.ObjectKeyFromObject(obj), func(r *remembered) {
		behind = (r.released == obj.GetUID() && controllerutil.ContainsFinalizer(obj, finalizer)) ||
			r.ended == obj.GetUID() || (r.knownUID == obj.GetUID() && older(obj.GetResourceVersion(), r.known))
		since = time.Since(r.behindSince)
	})
	return behind, since
}

// older reports whether version a precedes b; false if they cannot be compared.
func older(a, b string) bool {
	if b == "" {
		return false
	}
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

// longest returns the object whose pass has been under way for longest, and since when.
func (m *memory) longest() (types.NamespacedName, time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var key types.NamespacedName
	var since time.Time
	for k, r := range m.objects {
		if !r.started.IsZero() && (since.IsZero() || r.started.Before(since)) {
			key, since = k, r.started
		}
	}
	return key, since
}

// When returns to the work queue how long to delay an object whose pass failed. The pass has decided
// that already; an event that came meanwhile is in the queue and goes first. Without a decision it is a
// second, so that there is never a busy loop.
func (m *memory) When(req reconcile.Request) time.Duration {
	var d time.Duration
	m.with(req.NamespacedName, func(r *remembered) { d = r.delay })
	if d <= 0 {
		return time.Second
	}
	return d
}

// Forget is called by the work queue after a pass without error; successes are noted by
// the pass itself.
func (m *memory) Forget(reconcile.Request) {}

// NumRequeues returns the attempt an object is at.
func (m *memory) NumRequeues(req reconcile.Request) int {
	var n int
	m.with(req.NamespacedName, func(r *remembered) { n = r.ladder.attempts })
	return n
}
