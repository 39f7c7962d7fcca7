package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/component/internal/prune"
	"github.com/trimtab-dev/trimtab/graph"
)

// recheck is when a blocked deletion is tried again although no event came.
func (e *Engine) recheck() time.Duration { return cmp.Or(e.Recheck, time.Minute) }

// defines reports whether objects of other kinds exist because of a member.
func (m *member) defines() bool { return isCRD(m.item) || isAPIService(m.item) }

// permit finds out whether a component may be deleted: nothing is touched as long as objects of others
// exist of the types that it adds to the API. The text says which. Empty means that it may.
func (p *pass) permit(ctx context.Context) (string, error) {
	var texts []string
	var problems []error
	add := func(text string, err error) {
		if err != nil {
			problems = append(problems, err)
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	goes := false
	for _, key := range slices.Sorted(maps.Keys(p.members)) {
		m := p.members[key]
		if p.orphaned(m) {
			continue
		}
		if goes = true; m.defines() {
			definition, err := p.definition(ctx, m)
			if err != nil || definition == nil {
				add("", err)
				continue
			}
			add(p.foreignOf(ctx, m, definition))
		}
	}
	if goes {
		known, err := prune.Known(ctx, p.Target.Client, p.ManagedTypes)
		add("", err)
		add(p.foreignIn(ctx, known))
	}
	return strings.Join(texts, "; "), errors.Join(problems...)
}

// definition reads a member that defines types. It is nil if the object is gone, or not the member.
func (p *pass) definition(ctx context.Context, m *member) (*unstructured.Unstructured, error) {
	live, err := p.Target.Client.Get(ctx, ref(m.item))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", ref(m.item), err)
	case !p.ownsRead(m, live), live.GetDeletionTimestamp() != nil:
		return nil, nil
	}
	return live, nil
}

// foreignOf says which objects of others would go with a definition.
func (p *pass) foreignOf(ctx context.Context, m *member, definition *unstructured.Unstructured) (string, error) {
	defined, err := prune.Defined(ctx, p.Target.Client, definition)
	if errors.Is(err, prune.ErrUnserved) {
		return fmt.Sprintf("%s is not deleted: %v; or %s", ref(m.item), err, p.abandoning(m)), nil
	}
	if err != nil {
		return "", fmt.Errorf("find what would be deleted with %s: %w", ref(m.item), err)
	}
	text, err := p.foreignIn(ctx, defined)
	if err != nil {
		err = fmt.Errorf("find what would be deleted with %s: %w", ref(m.item), err)
	}
	if text != "" {
		text = fmt.Sprintf("%s is not deleted: %s; or %s", ref(m.item), text, p.abandoning(m))
		err = errors.Join(err, p.keep(ctx, definition))
	}
	return text, err
}

func (p *pass) abandoning(m *member) string {
	return fmt.Sprintf("set %s: %s on the component to leave it", abandonKey(p.Name), m.item.Key())
}

// foreignIn says which objects of some types are not the component's, or stay when it goes, and has the
// component woken when one of them is gone.
func (p *pass) foreignIn(ctx context.Context, types []prune.Type) (string, error) {
	var texts []string
	for _, t := range types {
		found, err := prune.Foreign(ctx, p.Target.Client, t, func(o metav1.Object) bool { return p.goes(t.GroupKind(), o) })
		if err != nil {
			return "", err
		}
		if found.Count == 0 {
			continue
		}
		texts = append(texts, found.String())
		if name := p.c.NamespacedName; p.Wake != nil {
			p.Watcher.Await(p.Target.Client, found, string(p.c.UID), func() { p.Wake(name) })
		}
	}
	if len(texts) == 0 {
		return "", nil
	}
	return "there are " + strings.Join(texts, " and ") + " that do not belong to the component; delete them", nil
}

// goes reports whether an object is a member that is deleted.
func (p *pass) goes(kind schema.GroupKind, o metav1.Object) bool {
	key := kind.Group + "/" + kind.Kind + "/" + o.GetNamespace() + "/" + o.GetName()
	m := p.members[graph.Key(key)]
	return m != nil && (m.wanted == nil || p.deleting) && !p.orphaned(m) && p.ownsRead(m, o)
}

// deleteDefinition deletes a definition, unless objects of others would go with it. While it is deleted,
// none can be created.
func (p *pass) deleteDefinition(ctx context.Context, m *member) error {
	definition, err := p.definition(ctx, m)
	if err != nil {
		return err
	}
	if definition == nil {
		if live, found := p.Target.Cache.Get(liveKey(m.item)); found && !live.Leaving {
			p.Target.Cache.NoteGone(liveKey(m.item), live.Version)
		}
		return nil
	}
	if blocked, err := p.blocks(ctx, m, definition); err != nil || blocked {
		return err
	}
	lift, err := p.fence(ctx, m, definition)
	if err != nil {
		return err
	}
	defer lift()
	if blocked, err := p.blocks(ctx, m, definition); err != nil || blocked {
		return err
	}
	return p.deleteReleased(ctx, m, definition)
}

// blocks reports whether objects of others would go with a definition. Nothing else is deleted then: what
// runs them stays.
func (p *pass) blocks(ctx context.Context, m *member, definition *unstructured.Unstructured) (bool, error) {
	text, err := p.foreignOf(ctx, m, definition)
	if text == "" {
		return false, err
	}
	m.held, m.again = text, p.recheck()
	p.hold(text)
	return true, err
}

// fence keeps objects of the types of a definition from being created until lift is called. Nothing does
// if the operator may not put a fence up, or if another API server serves the types: then an object that
// is created between the last look and the deletion is lost.
func (p *pass) fence(ctx context.Context, m *member, definition *unstructured.Unstructured) (lift func(), err error) {
	defined, err := prune.Defined(ctx, p.Target.Client, definition)
	if err != nil || !isCRD(m.item) || len(defined) == 0 {
		return func() {}, err
	}
	f := prune.Fence{Client: p.Target.Client, Operator: p.Name, Namespace: p.c.In, Definition: definition, Type: defined[0]}
	up, err := f.Up(ctx)
	if err != nil || !up {
		return func() {}, err
	}
	return func() {
		if err := f.Down(context.WithoutCancel(ctx)); err != nil {
			m.failed = err // it expires by itself
		}
	}, nil
}

// hold has nothing more deleted in the pass. why is what prevents it.
func (p *pass) hold(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == "" {
		p.held = why
	}
}

func (p *pass) heldBy() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}
