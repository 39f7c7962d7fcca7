package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/graph"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/node"
)

// Members that are not Kubernetes objects are nodes: a driver does what is to be done to them, and says in its
// answer how they are. Between two answers nothing is known of a node but the last answer.

// polls are the last answers of drivers, by the UIDs of components and the keys of nodes.
type polls struct {
	mu         sync.Mutex
	components map[types.UID]map[string]poll
	uids       map[types.NamespacedName]types.UID
}

// poll is the last answer about a node, and what it depends on.
type poll struct {
	basis
	health health.Result
	// due is when the driver wants to be asked again. Zero means never.
	due time.Time
}

// basis is what an answer depends on.
type basis struct {
	digest, record, asked string
	paused, deleting      bool
}

// wake has the nodes of a component looked at after a time.
func (l *polls) wake(component types.NamespacedName, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, known := range l.components[l.uids[component]] {
		if known.due.IsZero() || known.due.After(at) {
			known.due = at
			l.components[l.uids[component]][key] = known
		}
	}
}

func (l *polls) of(component types.UID, key string) (poll, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.components[component][key]
	return known, ok
}

func (l *polls) keep(name types.NamespacedName, component types.UID, key string, p poll) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.components == nil {
		l.components, l.uids = map[types.UID]map[string]poll{}, map[types.NamespacedName]types.UID{}
	}
	if l.components[component] == nil {
		l.components[component] = map[string]poll{}
	}
	l.components[component][key], l.uids[name] = p, component
}

func (l *polls) drop(component types.UID, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.components[component], key)
}

func (l *polls) forget(component types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.components, component)
	for name, uid := range l.uids {
		if uid == component {
			delete(l.uids, name)
		}
	}
}

// WakeNodes has the nodes of a component looked at in its first pass after a time.
func (e *Engine) WakeNodes(component types.NamespacedName, after time.Duration) {
	e.polls.wake(component, e.now().Add(after))
}

// prepare finds the drivers of the nodes, and has them say what is to be recorded of those that are wanted.
func (p *pass) prepare(ctx context.Context) error {
	var problems []error
	for _, m := range p.members {
		m.driver = p.Drivers[kindOf(m.item)]
		m.node = len(m.item.Record) > 0 || m.driver != nil && m.wanted != nil
		switch {
		case !m.node:
			m.driver = nil
		case m.driver == nil:
			m.fail(errors.New("it is not a Kubernetes object, and the operator has no driver for its kind; add the driver to its Options.Drivers"))
		case len(m.item.Record) == 0 && m.item.UID != "":
			m.fail(errors.New("it exists as a Kubernetes object, and is now rendered as an external resource or function; give it another name"))
		case m.wanted != nil && m.wanted.Manifest != nil:
			problems = append(problems, p.prepareOne(ctx, m))
		}
	}
	err := errors.Join(problems...)
	if err != nil {
		p.rendered.forget(p.c.UID) // the next pass needs the manifests, to record what this one did not
	}
	return err
}

// fail notes that nothing is known of a member.
func (m *member) fail(err error) {
	m.unobserved, m.failed = err, fmt.Errorf("observe %s: %w", ref(m.item), err)
}

// prepareOne brings the record of a node up to date with its manifest.
func (p *pass) prepareOne(ctx context.Context, m *member) error {
	r := p.request(m)
	r.Manifest = p.plain(m.wanted.Manifest.Object)
	record, err := m.driver.Record(ctx, r)
	if err != nil {
		return fmt.Errorf("record %s: %w", ref(m.item), err)
	}
	if bytes.Equal(record, m.item.Record) {
		return nil
	}
	if err := p.current(ctx, m); err != nil {
		return err
	}
	m.item.Record, m.recorded = record, false
	p.rendered.forget(p.c.UID) // what is recorded must have been written when the next pass begins
	return nil
}

// current finds out whether the record of a node is the one that is durable: a record must not be replaced
// because of an old copy of the component, and the status is written without a lock.
func (p *pass) current(ctx context.Context, m *member) error {
	if p.deleting {
		return nil
	}
	now, err := p.c.Durable(ctx, m.item.Key())
	if err == nil && !bytes.Equal(now, m.item.Record) {
		err = loop.Outdated(errors.New("the record has changed meanwhile"))
	}
	if err != nil {
		return fmt.Errorf("record %s: %w", ref(m.item), err)
	}
	return nil
}

// request is what the driver of a node gets to know.
func (p *pass) request(m *member) node.Request {
	key := m.item.Key()
	return node.Request{
		Run: p.c.Run, Component: p.c.NamespacedName, ComponentUID: p.c.UID, Key: key, Record: m.item.Record,
		Asked: p.c.Annotations[api.AnnotationReconcile], Paused: p.paused(m),
		Durable:  func(ctx context.Context) ([]byte, error) { return p.c.Durable(ctx, key) },
		Rendered: func(ctx context.Context) (client.Object, error) { return p.source(ctx, m) },
	}
}

// paused reports whether a node may be looked at, not changed.
func (p *pass) paused(m *member) bool { return !p.deleting && p.modeOf(m) != api.ModeFull }

func (p *pass) basisOf(m *member) basis {
	b := basis{
		record: string(m.item.Record), asked: p.c.Annotations[api.AnnotationReconcile],
		paused: p.paused(m), deleting: m.wanted == nil,
	}
	if m.wanted != nil {
		b.digest = m.wanted.Item.Digest
	}
	return b
}

// polled returns the last answer about a node if it still counts.
func (p *pass) polled(m *member) (poll, bool) {
	known, ok := p.polls.of(p.c.UID, m.item.Key())
	ok = ok && known.basis == p.basisOf(m) && (known.due.IsZero() || p.now().Before(known.due))
	return known, ok
}

// nodeFacts are what is known of a node.
func (p *pass) nodeFacts(m *member) graph.Facts {
	if m.forgotten {
		return graph.Facts{}
	}
	f := graph.Facts{Recorded: m.recorded, Held: m.held, Refused: m.refused, Completed: m.completed}
	f.Applied = m.wanted != nil && m.item.Digest == m.wanted.Item.Digest
	known, fresh := p.polled(m)
	switch {
	case m.unobserved != nil && p.abandoned(m), m.gone, m.completed && m.item.Phase == api.PhaseCompleted:
		f.Presence = graph.Absent
	case m.unobserved != nil:
		f.Presence = graph.Unknown
	case m.wanted == nil && fresh:
		f.Presence = graph.Leaving
	case m.wanted == nil:
		f.Presence = graph.Present
	case m.item.Digest == "" && !fresh:
		f.Presence = graph.Absent
	default:
		f.Presence, f.Health = graph.Present, healthOf(known.health.Status)
		if !fresh {
			f.Change, f.Health = graph.NeedsUpdate, graph.HealthUnknown
		}
	}
	switch mode := p.modeOf(m); {
	case p.deleting || m.gone || fresh && m.wanted != nil:
	case mode == api.ModeSuspended && !fresh:
		p.suspend(m, &f)
	case mode == api.ModeDetectOnly && m.wanted == nil && !p.abandoned(m) && !forgetful(m):
		f.Refused, m.again = "is not deleted in mode detect-only", idle
	}
	return f
}

// forgetful reports whether a node is nothing but its record, or nothing that could be found again.
func forgetful(m *member) bool { return m.driver != nil && m.driver.About().Forgetful }

// suspend keeps a node from being looked at.
func (p *pass) suspend(m *member, f *graph.Facts) {
	if m.wanted != nil && m.item.Digest != "" {
		f.Change, f.Health = graph.NoChange, graph.Current
		return
	}
	f.Refused, m.again = "is not changed in mode suspended", idle
}

// performNode has the driver of a node perform an action.
func (p *pass) performNode(ctx context.Context, m *member, action graph.Action) error {
	switch action {
	case graph.Create:
		m.item.Phase, m.completed = api.PhaseCreating, false
		return p.applyNode(ctx, m)
	case graph.Update, graph.Recreate:
		if m.item.Digest != m.wanted.Item.Digest {
			m.item.Phase, m.completed = api.PhaseUpdating, false
		}
		return p.applyNode(ctx, m)
	case graph.Complete:
		m.item.Phase, m.again = api.PhaseCompleting, soon
	case graph.Purge:
		return p.deleteNode(ctx, m, false)
	case graph.Delete:
		if why := p.heldBy(); why != "" {
			m.held = why
			return nil
		}
		if claimed, err := p.keepForAnother(ctx, m); claimed || err != nil {
			return err
		}
		m.item.Phase = api.PhaseDeleting
		return p.deleteNode(ctx, m, false)
	case graph.Release:
		m.item.Phase = api.PhaseDeleting
		return p.deleteNode(ctx, m, true)
	case graph.Forget:
		m.forgotten = true
	case graph.None, graph.Record:
	}
	return nil
}

func (p *pass) applyNode(ctx context.Context, m *member) error {
	a := m.driver.Apply(ctx, p.request(m))
	p.answered(m, a)
	if a.Err == nil && !a.RecordFirst {
		m.item.Digest = m.wanted.Item.Digest
		p.learn(m, a)
	}
	return a.Err
}

func (p *pass) deleteNode(ctx context.Context, m *member, keep bool) error {
	r := p.request(m)
	r.Keep = keep
	a := m.driver.Delete(ctx, r)
	p.answered(m, a)
	if a.Err == nil && a.Gone {
		m.gone = true
		return nil
	}
	if a.Err == nil && !a.RecordFirst {
		p.learn(m, a)
	}
	return a.Err
}

// answered takes over the record that a driver answers with.
func (p *pass) answered(m *member, a node.Answer) {
	p.polls.drop(p.c.UID, m.item.Key())
	if len(a.Record) > 0 {
		m.item.Record = a.Record
	}
	if m.unwritten = a.RecordFirst && a.Err == nil; m.unwritten {
		m.again = soon
	}
}

// learn remembers an answer.
func (p *pass) learn(m *member, a node.Answer) {
	known := poll{basis: p.basisOf(m), health: a.Health}
	if a.Again > 0 {
		known.due = p.now().Add(a.Again)
	}
	p.polls.keep(p.c.NamespacedName, p.c.UID, m.item.Key(), known)
}

// dues notes when the nodes are to be looked at again.
func (p *pass) dues() {
	for _, m := range p.members {
		known, ok := p.polls.of(p.c.UID, m.item.Key())
		if !m.node || !ok || known.due.IsZero() || m.forgotten || m.gone {
			continue
		}
		if wait := max(known.due.Sub(p.now()), soon); m.again == 0 || wait < m.again {
			m.again = wait
		}
	}
}

// waitForNode says what a node lacks.
func (p *pass) waitForNode(m *member, why string) string {
	return fmt.Sprintf("%s: %s", ref(m.item), cmp.Or(p.stateOfNode(m), why))
}

// stateOfNode says why a node is not as it should be, if it is known.
func (p *pass) stateOfNode(m *member) string {
	known, fresh := p.polled(m)
	switch {
	case m.unobserved != nil:
		return m.unobserved.Error()
	case m.unwritten:
		return "its record is written first"
	case fresh:
		return known.health.Why
	}
	return ""
}

// pending keeps what is not rendered as long as something is to be made from a node that was never ready: it
// may be that.
func (p *pass) pending() {
	if len(p.unrendered) == 0 {
		return
	}
	for _, m := range p.members {
		if m.wanted == nil && !leavingPhase(m.item.Phase) {
			m.held, m.kept = "is kept until "+p.unrendered[0]+" is ready, from which objects are made", true
		}
	}
}

// plain returns a manifest without what is for the operator.
func (p *pass) plain(manifest map[string]any) map[string]any {
	u := (&unstructured.Unstructured{Object: manifest}).DeepCopy()
	ours := func(key, _ string) bool { return strings.HasPrefix(key, p.Name+"/") }
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	maps.DeleteFunc(labels, ours)
	maps.DeleteFunc(annotations, ours)
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	return u.Object
}
