package engine

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/graph"
)

// Dependents are watched by their label. To a watch, an object that loses the label is like one that is deleted:
// only a read shows that it is still there. A wanted one is read when it is to be created again.

// errLabelled is why nothing is done to a member in the pass that gives it back its label.
var errLabelled = errors.New("it had lost the label by which it is watched")

// forget drops the record of a member that is gone. If it is still there and has only lost its label, it gets the
// label back instead, and the next pass deletes it. Nobody asks about members whose deletion was seen.
func (p *pass) forget(ctx context.Context, m *member) error {
	live, err := p.unlabelled(ctx, m)
	if err != nil || live == nil || m.wanted != nil {
		m.forgotten = err == nil
		return err
	}
	live, err = p.Target.Client.Patch(ctx, ref(m.item), map[string]any{"metadata": map[string]any{
		"uid": string(live.GetUID()), "resourceVersion": live.GetResourceVersion(),
		"labels": map[string]any{desired.OwnerKey(p.Name): desired.OwnerLabel(p.c.Owner)},
	}})
	switch {
	case err == nil:
		p.Target.Cache.Note(live)
	case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
		return fmt.Errorf("give it back its label: %w", err)
	}
	m.unobserved, m.again = errLabelled, soon
	return nil
}

// unlabelled returns the object of a member that is not known if it is there all the same; nil if it is not.
func (p *pass) unlabelled(ctx context.Context, m *member) (*unstructured.Unstructured, error) {
	_, known := p.Target.Cache.Get(liveKey(m.item))
	deleted := m.item.Phase == api.PhaseDeleting || m.item.Phase == api.PhaseCompleted
	if known || deleted || m.node || m.item.UID == "" || p.abandoned(m) {
		return nil, nil
	}
	live, err := p.Target.Client.Get(ctx, ref(m.item))
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("observe it: %w", err)
	case !p.ownsRead(m, live), string(live.GetUID()) != m.item.UID && !p.wrote(live):
		return nil, nil
	}
	return live, nil
}

// compare finds the members in mode detect-only that only lost their label: they are not corrected, and count as
// changed, not as deleted.
func (p *pass) compare(ctx context.Context) {
	for _, m := range p.members {
		if m.wanted == nil || m.unobserved != nil || p.modeOf(m) != api.ModeDetectOnly {
			continue
		}
		live, err := p.unlabelled(ctx, m)
		if err != nil {
			m.unobserved, m.failed = err, fmt.Errorf("observe %s: %w", ref(m.item), err)
		}
		m.unlabelled = live != nil
	}
}

// missing says how a member in mode detect-only that is not known drifted, and why nothing is done to it.
func (m *member) missing(f *graph.Facts) {
	m.drift, m.again = "was deleted", idle
	f.Refused = "was deleted and is not created again in mode detect-only"
	if m.unlabelled {
		m.drift = "has lost the label by which it is watched"
		f.Refused = m.drift + ", which is not given back in mode detect-only"
	}
}
