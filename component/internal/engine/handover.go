package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/graph"
)

// An object moves from one component to another in this order:
//
//  1. The new component records it in its inventory. It finds that the object belongs to another, and waits.
//  2. The old one no longer wants it. It keeps it for a while, then asks the API server which components have
//     recorded it, and makes the object that component's, instead of deleting it.
//  3. It asks once more. If the new component still has it recorded, the old one drops its own record. Otherwise
//     it takes the object back.
//
// So at each moment the object is in the inventory of the component that it belongs to, or of the one that has
// to decide whose it is. A component that no longer wants what it only waits for says so in its inventory, and
// looks at the object after that, before it drops its record: then either it finds the object to be its own, or
// the old component finds the record gone and takes the object back.

// Claim is a component that has recorded an object and may have it.
type Claim struct {
	// Owner identifies the component: cluster/namespace/name.
	Owner string
	UID   string
}

// handedKey is the annotation of an object that was handed over: the component that had it before. It is gone
// when the new one has applied its manifest.
func handedKey(name string) string { return name + "/handed-over-by" }

// handoverGrace is how long an object is kept that is no longer rendered. Changes of several components that
// are meant as one arrive one after the other.
const handoverGrace = 5 * time.Second

// graces know since when objects are no longer rendered. A new process starts counting from zero, which only
// keeps them longer.
type graces struct {
	mu         sync.Mutex
	components map[types.UID]map[string]time.Time
}

// begin notes which objects of a component are not rendered, and returns since when.
func (g *graces) begin(component types.UID, keys []string, now time.Time) map[string]time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.components[component]
	if len(keys) == 0 {
		delete(g.components, component)
		return nil
	}
	since := make(map[string]time.Time, len(keys))
	for _, key := range keys {
		if since[key] = now; !before[key].IsZero() {
			since[key] = before[key]
		}
	}
	if g.components == nil {
		g.components = map[types.UID]map[string]time.Time{}
	}
	g.components[component] = since
	return since
}

// handOver finds the members that are to go and keeps them for a while. Those that another component has
// recorded become its own.
func (p *pass) handOver(ctx context.Context) {
	var leaving []*member
	for _, m := range p.members {
		live, found := p.Target.Cache.Get(liveKey(m.item))
		switch {
		case m.wanted != nil, !found, live.Leaving, m.unobserved != nil, m.foreign, p.abandoned(m):
		case !p.deleting && p.modeOf(m) == api.ModeSuspended: // it does not go
		case !p.owns(m, live) && !p.withdraw(ctx, m):
		default:
			leaving = append(leaving, m)
		}
	}
	keys := make([]string, len(leaving))
	for i, m := range leaving {
		keys[i] = m.item.Key()
	}
	slices.Sort(keys)
	p.delay(leaving, keys)
	p.claims = once(func(ctx context.Context) (map[string]Claim, error) {
		if p.c.Claims == nil || len(keys) == 0 {
			return nil, nil
		}
		return p.c.Claims(ctx, keys)
	})
	held := func(m *member) bool { return m.held != "" }
	if !p.deleting && !slices.ContainsFunc(leaving, held) {
		return // they are asked about when the first of them is to be deleted
	}
	for _, m := range leaving {
		if _, err := p.give(ctx, m); err != nil {
			m.failed = err
		}
	}
}

// delay keeps members that are to be deleted because they are no longer rendered.
func (p *pass) delay(leaving []*member, keys []string) {
	grace := p.Grace
	if grace == 0 {
		grace = handoverGrace
	}
	if grace < 0 || p.deleting {
		return
	}
	now := p.now()
	since := p.graces.begin(p.c.UID, keys, now)
	for _, m := range leaving {
		rest := grace - now.Sub(since[m.item.Key()])
		if rest <= 0 || m.held != "" || p.orphaned(m) {
			continue
		}
		m.held, m.again = fmt.Sprintf("is kept for %s in case another component takes it over", grace), rest
	}
}

// give makes a member the component's that has recorded it. It reports whether there is one: then nothing else
// is done to the member in this pass.
func (p *pass) give(ctx context.Context, m *member) (given bool, err error) {
	if m.forgotten || p.claims == nil {
		return m.forgotten, nil
	}
	claims, err := p.claims(ctx)
	if err != nil {
		return false, fmt.Errorf("ask which components have recorded %s: %w", ref(m.item), err)
	}
	to, claimed := claims[m.item.Key()]
	if !claimed {
		return false, nil
	}
	self := p.self()
	if moved, err := p.reassign(ctx, m, self, to); err != nil || !moved {
		return false, err
	}
	return true, p.confirm(ctx, m, self, to)
}

func (p *pass) self() Claim { return Claim{Owner: p.c.Owner, UID: string(p.c.UID)} }

// confirm drops the record of a member that was handed over, if the other component still has it recorded.
// Otherwise the member is taken back.
func (p *pass) confirm(ctx context.Context, m *member, self, to Claim) error {
	claims, err := p.c.Claims(ctx, []string{m.item.Key()})
	if err != nil {
		m.unobserved = fmt.Errorf("it is not known whether %s has recorded it: %w", to.Owner, err)
		return m.unobserved
	}
	if claims[m.item.Key()] == to {
		m.forgotten = true
		return nil
	}
	m.held, m.again = fmt.Sprintf("is kept: %s was to take it over and no longer renders it", to.Owner), soon
	if _, err = p.reassign(ctx, m, to, self); err != nil {
		m.unobserved = err
	}
	return err
}

// reassign makes an object another component's. It reports whether the object was there and belonged to the
// first.
func (p *pass) reassign(ctx context.Context, m *member, from, to Claim) (bool, error) {
	key, owner := m.item.Key(), desired.OwnerKey(p.Name)
	annotations := map[string]any{owner: desired.OwnerAnnotation(to.Owner, to.UID, key), handedKey(p.Name): nil}
	if to != p.self() {
		annotations[handedKey(p.Name)] = from.Owner
		// It is not the manifest of the new component that was applied, even if that is the same.
		annotations[desired.DigestKey(p.Name)] = nil
	}
	for try := 1; ; try++ {
		live, err := p.Target.Client.Get(ctx, ref(m.item))
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("hand over %s: %w", ref(m.item), err)
		}
		ours := p.ownerOf(live) == desired.OwnerAnnotation(from.Owner, from.UID, key) || from == p.self() && p.ownsRead(m, live)
		if !ours || live.GetDeletionTimestamp() != nil {
			return false, nil
		}
		live, err = p.Target.Client.Patch(ctx, ref(m.item), map[string]any{"metadata": map[string]any{
			"uid": string(live.GetUID()), "resourceVersion": live.GetResourceVersion(),
			"labels": map[string]any{owner: desired.OwnerLabel(to.Owner)}, "annotations": annotations,
		}})
		switch {
		case err == nil:
			p.Target.Cache.Note(live)
			return true, nil
		case !apierrors.IsConflict(err) || try == attempts:
			return false, fmt.Errorf("hand over %s: %w", ref(m.item), err)
		}
	}
}

// errWithdrawn is why nothing is done to a member in the pass that records that it is no longer wanted.
var errWithdrawn = errors.New("it is recorded first that the component no longer renders it")

// withdraw deals with a member that is to go and belongs to another component: one that this component handed
// over without finding out whether it is recorded there, or one that it waited for. The object says itself who
// handed it over. The UIDs do not: an object that was repaired or just created has another UID than the one
// that is recorded. It reports whether the member turns out to be the component's own.
func (p *pass) withdraw(ctx context.Context, m *member) (own bool) {
	live, _ := p.Target.Cache.Get(liveKey(m.item))
	id, _, _, _ := desired.ParseOwner(live.Owner)
	switch {
	case !p.sibling(id) || p.c.Claims == nil:
		return false
	case !p.deleting && !leavingPhase(m.item.Phase):
		m.unobserved, m.again = errWithdrawn, soon
		m.kept, m.item.Kept = false, false // it is not the component's to keep
		return false
	}
	now, err := p.Target.Client.Get(ctx, ref(m.item))
	if apierrors.IsNotFound(err) {
		return false
	}
	if err != nil {
		m.unobserved, m.failed = err, fmt.Errorf("observe %s: %w", ref(m.item), err)
		return false
	}
	id, uid, key, _ := desired.ParseOwner(p.ownerOf(now))
	switch {
	case p.ownsRead(m, now):
		p.Target.Cache.Note(now)
		return true
	case now.GetAnnotations()[handedKey(p.Name)] == p.c.Owner && p.sibling(id) && key == m.item.Key() && p.wrote(now):
		if err := p.confirm(ctx, m, p.self(), Claim{id, uid}); err != nil {
			m.failed = err
		}
	}
	return false
}

// sibling reports whether an owner is another component of the operator in the same namespace.
func (p *pass) sibling(owner string) bool {
	mine := strings.TrimSuffix(p.c.Owner, p.c.Name)
	return owner != p.c.Owner && strings.HasPrefix(owner, mine) && !strings.Contains(strings.TrimPrefix(owner, mine), "/")
}

// nudge has the owners of objects that this component waits for look whether they still want them.
func (p *pass) nudge() {
	if p.Wake == nil {
		return
	}
	woken := map[string]bool{}
	for key, m := range p.members {
		live, found := p.Target.Cache.Get(liveKey(m.item))
		if m.wanted == nil || m.refused == "" || !found {
			continue
		}
		id, uid, own, _ := desired.ParseOwner(live.Owner)
		if !p.sibling(id) || uid != "" && graph.Key(own) != key || woken[id] { // without a UID: of component-operator-runtime
			continue
		}
		woken[id] = true
		p.Wake(types.NamespacedName{Namespace: p.c.Namespace, Name: strings.TrimPrefix(id, strings.TrimSuffix(p.c.Owner, p.c.Name))})
	}
}
