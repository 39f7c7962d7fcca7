package children

import (
	"slices"
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
	// writing are the writes under way, of which an object may have several: by two owners, or by a pass and by orphans.
	writing map[apply.Ref][]*writing
	// ended are objects of which the API server said, in answer to a delete, that they are gone.
	ended map[types.UID]bool
	// claims are objects whose end is news for owners that want their names, and holding what each of these waits for.
	claims  map[apply.Ref]map[owning]bool
	holding map[owning][]apply.Ref
	// label is that of an object with the UID of its owner.
	label string
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

// writing is a write by an owner, with the events about the object since it began.
type writing struct {
	owner  types.UID
	events []happened
}

// happened is an event: the versions of an object before and after.
type happened struct{ before, after string }

func newMemory() *memory {
	return &memory{
		written: map[apply.Ref]*written{}, writing: map[apply.Ref][]*writing{}, ended: map[types.UID]bool{},
		claims: map[apply.Ref]map[owning]bool{}, holding: map[owning][]apply.Ref{},
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
}

// begin notes that a write is about to be sent by an owner. Events about the object wait for its answer.
func (m *memory) begin(ref apply.Ref, owner types.UID) *writing {
	m.mu.Lock()
	defer m.mu.Unlock()
	begun := &writing{owner: owner}
	m.writing[ref] = append(m.writing[ref], begun)
	return begun
}

// end notes the answer to a write: what the object is now, nil if that is not known. ended is its UID if it is gone. It
// reports whether something else happened to the object meanwhile.
func (m *memory) end(ref apply.Ref, begun *writing, w *written, ended types.UID) (more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := false
	for _, e := range begun.events {
		switch {
		case ended != "" && e.after == "":
			seen = true
		case w == nil || !w.echo(e):
			more = true
		}
	}
	if m.writing[ref] = slices.DeleteFunc(m.writing[ref], func(w *writing) bool { return w == begun }); len(m.writing[ref]) == 0 {
		delete(m.writing, ref)
	}
	switch {
	case ended != "":
		delete(m.written, ref)
		if !seen {
			m.ended[ended] = true
		}
	case w != nil:
		if old := m.written[ref]; old != nil && old.uid == w.uid {
			w.repairs = append(recent(old.repairs, w.at), w.repairs...)
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

// claim notes that an owner waits for the end of an object.
func (m *memory) claim(ref apply.Ref, owner owning) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claims[ref] == nil {
		m.claims[ref] = map[owning]bool{}
	}
	if !m.claims[ref][owner] {
		m.claims[ref][owner] = true
		m.holding[owner] = append(m.holding[owner], ref)
	}
}

// keep forgets the claims of an owner but for those to some objects.
func (m *memory) keep(owner owning, refs map[apply.Ref]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rest := slices.DeleteFunc(m.holding[owner], func(ref apply.Ref) bool {
		if refs[ref] {
			return false
		}
		if delete(m.claims[ref], owner); len(m.claims[ref]) == 0 {
			delete(m.claims, ref)
		}
		return true
	})
	if m.holding[owner] = rest; len(rest) == 0 {
		delete(m.holding, owner)
	}
}

// claimed returns the owners that wait for the end of an object.
func (m *memory) claimed(ref apply.Ref) (owners []types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for owner := range m.claims[ref] {
		owners = append(owners, owner.NamespacedName)
	}
	return owners
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
			return len(m.claims[ref]) > 0
		}
	}
	var e happened
	if before != nil {
		e.before = before.GetResourceVersion()
	}
	if after != nil {
		e.after = after.GetResourceVersion()
	}
	if under := m.writing[ref]; len(under) > 0 {
		for _, w := range under {
			w.events = append(w.events, e)
		}
		return after == nil && len(m.claims[ref]) > 0 || m.concerns(under, before) || m.concerns(under, after)
	}
	w := m.written[ref]
	return w == nil || after == nil || w.uid != after.GetUID() || !w.echo(e)
}

// concerns reports whether an object has an owner besides those that are writing to it, whom no answer will wake.
func (m *memory) concerns(under []*writing, obj client.Object) bool {
	if obj == nil {
		return false
	}
	owner := obj.GetLabels()[m.label]
	return owner != "" && !slices.ContainsFunc(under, func(w *writing) bool { return string(w.owner) == owner })
}

// Others may undo our repairs as fast as we make them.
const (
	mostRepairs   = 5
	repairsWithin = time.Minute
)

// rest returns how long a repair has to wait, because there were too many lately.
func (w *written) rest(now time.Time) time.Duration {
	repairs := recent(w.repairs, now)
	if len(repairs) < mostRepairs {
		return 0
	}
	return repairsWithin - now.Sub(repairs[0])
}

// recent returns those of some repairs that count.
func recent(repairs []time.Time, now time.Time) []time.Time {
	return slices.DeleteFunc(slices.Clone(repairs), func(at time.Time) bool { return now.Sub(at) >= repairsWithin })
}
