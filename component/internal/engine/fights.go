package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/graph"
	"github.com/trimtab-dev/trimtab/internal/apply"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// A fight is more than mostCorrections of one object by the same other writer within fightWindow. After
// that the object is corrected once in a while.
const (
	mostCorrections = 3
	fightWindow     = 5 * time.Minute
	onceInAWhile    = time.Minute
	// anonymous is how many corrections of an object go by before it is asked who the other is.
	anonymous = 2
	// mostPaths is how many fields are named.
	mostPaths = 5
)

// fights has the corrections that this process made. The zero value is ready to use.
type fights struct {
	mu      sync.Mutex
	objects map[fighter][]correction
}

// fighter names a dependent.
type fighter struct {
	component types.UID
	key       graph.Key
}

// correction is one write that corrected a dependent.
type correction struct {
	at time.Time
	// managers are the field managers that had changed it, and fields what they had changed. Both are
	// empty if that was not asked.
	managers, fields []string
	// orphaned says which owner of the object does not exist, so that the garbage collector deletes it.
	orphaned string
}

// count returns how many corrections of a dependent there were lately.
func (f *fights) count(id fighter, now time.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.recent(id, now))
}

// recent returns the corrections within the window, and forgets the others.
func (f *fights) recent(id fighter, now time.Time) []correction {
	list := slices.DeleteFunc(f.objects[id], func(c correction) bool { return now.Sub(c.at) >= fightWindow })
	if len(list) == 0 {
		delete(f.objects, id)
		return nil
	}
	f.objects[id] = list
	return list
}

// note adds a correction.
func (f *fights) note(id fighter, c correction) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.objects == nil {
		f.objects = map[fighter][]correction{}
	}
	f.objects[id] = append(f.objects[id], c)
}

// forget drops what is known of a component.
func (f *fights) forget(component types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.objects {
		if id.component == component {
			delete(f.objects, id)
		}
	}
}

// judge returns who fights over a dependent, and when it may be corrected next. Nobody fights if whom is
// empty.
func (f *fights) judge(id fighter, now time.Time, pause time.Duration) (whom string, next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.recent(id, now)
	unnamed, by := 0, map[string]int{}
	var last correction
	for _, c := range list {
		if len(c.managers) == 0 {
			unnamed++
			continue
		}
		last = c
		for _, manager := range c.managers {
			by[manager]++
		}
	}
	most := 0
	for _, n := range by {
		most = max(most, n)
	}
	if unnamed+most <= mostCorrections {
		return "", time.Time{}
	}
	next = list[len(list)-1].at.Add(pause)
	switch newest := list[len(list)-1]; {
	case newest.orphaned != "":
		return "the garbage collector deletes it again and again, because " + newest.orphaned, next
	case len(last.managers) == 0:
		return "somebody deletes it again and again", next
	}
	return fmt.Sprintf("%s changes %s again and again", strings.Join(last.managers, ", "), strings.Join(last.fields, ", ")), next
}

func (p *pass) fighter(m *member) fighter { return fighter{p.c.UID, graph.Key(m.item.Key())} }

// corrects reports whether a write of a member repairs what others did.
func (m *member) corrects() bool {
	return m.wanted != nil && m.item.Digest == m.wanted.Item.Digest
}

// contend notes whether others keep changing a member, and returns what keeps a drifted one from being
// corrected now. Empty means nothing.
func (p *pass) contend(m *member, drifted bool) string {
	whom, next := p.fights.judge(p.fighter(m), p.now(), p.pause())
	if whom == "" {
		return ""
	}
	m.contended, m.again = fmt.Sprintf("is contended: %s; it is corrected once in %v", whom, p.pause()), fightWindow
	if wait := next.Sub(p.now()); wait > 0 && drifted {
		m.again = wait
		return m.contended
	}
	return ""
}

// correct writes a member, and remembers it if that repairs what others did.
func (p *pass) correct(ctx context.Context, m *member, write func(context.Context, *member) error) error {
	if !m.corrects() {
		return write(ctx, m)
	}
	c := p.blame(ctx, m)
	err := write(ctx, m)
	if err == nil && m.refused == "" {
		p.fights.note(p.fighter(m), c)
	}
	return err
}

// blame returns who changed a member that is about to be corrected, and in which fields. The first times
// nobody is asked.
func (p *pass) blame(ctx context.Context, m *member) correction {
	c := correction{at: p.now()}
	if p.fights.count(p.fighter(m), c.at) < anonymous {
		return c
	}
	live, err := p.Target.Client.Get(ctx, ref(m.item))
	if apierrors.IsNotFound(err) {
		c.orphaned = p.missingOwner(ctx, m)
	}
	if err != nil {
		return c // what else is wrong will be said by the write
	}
	paths, _ := fingerprint.Diff(m.manifest().Object, live.Object, mostPaths)
	for _, path := range paths {
		c.fields = append(c.fields, path.String())
	}
	for _, w := range fingerprint.Managers(live.Object, paths) {
		if w.Manager != p.Name && !slices.Contains(c.managers, w.Manager) {
			c.managers = append(c.managers, w.Manager)
		}
	}
	if len(c.managers) == 0 && len(paths) > 0 {
		c.managers = []string{"somebody"}
	}
	return c
}

// missingOwner says which of the owners that a manifest names does not exist. An object without any of its owners is
// deleted by the garbage collector.
func (p *pass) missingOwner(ctx context.Context, m *member) string {
	var missing string
	for _, owner := range m.wanted.Manifest.GetOwnerReferences() {
		object := apply.Ref{
			GroupVersionKind: schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind),
			NamespacedName:   types.NamespacedName{Namespace: m.item.Namespace, Name: owner.Name},
		}
		live, err := p.Target.Client.Get(ctx, object)
		if err == nil && live.GetUID() == owner.UID || err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			return ""
		}
		missing = fmt.Sprintf("its owner, %s %s with the UID %s, does not exist; correct metadata.ownerReferences in the manifest or remove it",
			owner.Kind, owner.Name, owner.UID)
	}
	return missing
}

// now is the time, which tests may set.
func (e *Engine) now() time.Time {
	if e.Now != nil {
		return e.Now()
	}
	return time.Now()
}

// pause is how long a contended object is left as it is.
func (e *Engine) pause() time.Duration {
	if e.Pause > 0 {
		return e.Pause
	}
	return onceInAWhile
}
