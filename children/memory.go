package children

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/apply"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// memory is what a process knows better than its cache: what it wrote last. Losing it costs requests that change
// nothing, never correctness.
type memory struct {
	mu      sync.Mutex
	written map[apply.Ref]*written
	// writing are the objects to which a write is under way, with the events about them since it began.
	writing map[apply.Ref][]happened
	// ended are objects of which the API server said, in answer to a delete, that they are gone.
	ended map[types.UID]bool
	// claims are objects of others that have the name of a child: their end is news for its owner.
	claims map[apply.Ref]types.NamespacedName
}

// written is what became of an object by the last write to it, or by a pass that found nothing to write.
type written struct {
	uid types.UID
	// version is that of the answer, before the one that the cache had when the write was sent.
	version, before string
	digest          string
	values          fingerprint.Hash
	at              time.Time
	// answer is the object as the API server had it, until the cache shows it.
	answer *unstructured.Unstructured
	// repairs are when somebody else's changes were undone, lately.
	repairs []time.Time
}

// happened is an event: the versions of an object before and after.
type happened struct{ before, after string }

func newMemory() *memory {
	return &memory{
		written: map[apply.Ref]*written{}, writing: map[apply.Ref][]happened{}, ended: map[types.UID]bool{},
		claims: map[apply.Ref]types.NamespacedName{},
	}
}

// lag is how long the cache may be behind a write, as package loop has it.
const lag = 5 * time.Second

// newer returns what was written if the cache does not show it yet. cached is nil if the cache has no object of that
// name.
func (m *memory) newer(ref apply.Ref, cached client.Object) *unstructured.Unstructured {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.written[ref]
	switch {
	case w == nil || w.answer == nil:
		return nil
	case cached == nil && time.Since(w.at) < lag, cached != nil && older(cached.GetResourceVersion(), w.version):
		return w.answer
	case cached == nil:
		delete(m.written, ref)
	default:
		w.answer = nil
	}
	return nil
}

// older reports whether version a precedes b; false if they cannot be compared.
func older(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

// known returns what was written to the object with that UID, if anything was.
func (m *memory) known(ref apply.Ref, uid types.UID) (written, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.written[ref]; w != nil && w.uid == uid {
		return *w, true
	}
	return written{}, false
}

// gone reports whether the object with that UID is known to have ended.
func (m *memory) gone(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended[uid]
}

// found notes that an object has what was to be applied.
func (m *memory) found(ref apply.Ref, w written) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.written[ref]; old != nil && old.uid == w.uid {
		w.version, w.before, w.answer, w.repairs = old.version, old.before, old.answer, old.repairs
	}
	m.written[ref] = &w
	delete(m.claims, ref)
}

// begin notes that a write is about to be sent. Events about the object wait for its answer.
func (m *memory) begin(ref apply.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writing[ref] = []happened{}
	delete(m.claims, ref)
}

// end notes the answer to a write: what the object is now, nil if that is not known. ended is its UID if it is gone. It
// reports whether something else happened to the object meanwhile.
func (m *memory) end(ref apply.Ref, w *written, ended types.UID) (more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := false
	for _, e := range m.writing[ref] {
		switch {
		case ended != "" && e.after == "":
			seen = true
		case w == nil || !w.echo(e):
			more = true
		}
	}
	delete(m.writing, ref)
	switch {
	case ended != "":
		delete(m.written, ref)
		if !seen {
			m.ended[ended] = true
		}
	case w != nil:
		if old := m.written[ref]; old != nil && old.uid == w.uid {
			w.repairs = append(old.repairs, w.repairs...)
		}
		m.written[ref] = w
	}
	return more
}

// echo reports whether an event shows nothing but a write of ours: no other write can have come between what we knew
// and what we wrote.
func (w *written) echo(e happened) bool {
	return e.after == w.version && (e.before == "" || e.before == w.before)
}

// claim notes that an owner wants an object that belongs to somebody else.
func (m *memory) claim(ref apply.Ref, owner types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claims[ref] = owner
}

// claimed returns the owner that wants an object.
func (m *memory) claimed(ref apply.Ref) (types.NamespacedName, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	owner, ok := m.claims[ref]
	return owner, ok
}

// news reports whether an event about an object is more than an echo of our own write. before is nil for a new object,
// after for one that is gone.
func (m *memory) news(ref apply.Ref, before, after client.Object) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if after == nil {
		if w := m.written[ref]; w != nil && w.uid == before.GetUID() {
			delete(m.written, ref)
		}
		if m.ended[before.GetUID()] {
			delete(m.ended, before.GetUID())
			return false
		}
	}
	var e happened
	if before != nil {
		e.before = before.GetResourceVersion()
	}
	if after != nil {
		e.after = after.GetResourceVersion()
	}
	if waiting, under := m.writing[ref]; under {
		m.writing[ref] = append(waiting, e)
		return false
	}
	w := m.written[ref]
	return w == nil || after == nil || w.uid != after.GetUID() || !w.echo(e)
}

// Others may undo our repairs as fast as we make them.
const (
	mostRepairs   = 5
	repairsWithin = time.Minute
)

// rest returns how long a repair has to wait, because there were too many lately.
func (w *written) rest(now time.Time) time.Duration {
	for len(w.repairs) > 0 && now.Sub(w.repairs[0]) >= repairsWithin {
		w.repairs = w.repairs[1:]
	}
	if len(w.repairs) < mostRepairs {
		return 0
	}
	return repairsWithin - now.Sub(w.repairs[0])
}
