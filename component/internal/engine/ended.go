package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/component/internal/projection"
)

// A Job that has completed, and a Pod that has succeeded, have done the work of their manifest. They may be
// deleted by anybody, and are created again only when the manifest changes. For that they must be recorded as
// completed before they can be gone, so a Job gets its spec.ttlSecondsAfterFinished only after that record is
// durable:
//
//	apply without the field -> it completes -> record Completing -> apply the field -> record Completed
//
// A Job that has failed never gets the field, and stays for people to look at.

// ended reports whether a member is recorded as having ended by itself. It may be gone.
func (m *member) ended() bool {
	return m.completed && !m.node && projection.EndsByItself(kindOf(m.item)) && (m.wanted == nil || m.wanted.Purge == nil)
}

// over reports whether a member that is purged has ended by itself.
func (m *member) over(live projection.Object, found bool) bool {
	return m.wanted != nil && m.wanted.Purge != nil && !m.node && projection.EndsByItself(kindOf(m.item)) && (m.completed || found && live.Ended)
}

// end notes that a member has ended.
func (m *member) end() {
	switch {
	case m.ended():
	case m.expires():
		m.item.Phase, m.again = api.PhaseCompleting, soon
	default:
		m.item.Phase = api.PhaseCompleted
	}
}

// expires reports whether the manifest of a member has it deleted when it has finished.
func (m *member) expires() bool { return !m.node && m.wanted != nil && m.wanted.Expires }

// mayExpire reports whether a member is to get the field that has it deleted now.
func (m *member) mayExpire() bool {
	return m.ended() && m.item.Phase == api.PhaseCompleting && m.expires()
}

// expire applies the field that has a member deleted. It may be gone already.
func (p *pass) expire(ctx context.Context, m *member) error {
	if err := p.update(ctx, m); err != nil {
		return err
	}
	m.item.Phase = api.PhaseCompleted
	return nil
}

// manifest is what is applied of a member now.
func (m *member) manifest() *unstructured.Unstructured { return m.lasting(m.wanted.Manifest) }

// lasting returns a manifest without what has the object deleted before it is recorded as completed.
func (m *member) lasting(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	if !m.expires() || m.ended() {
		return manifest
	}
	manifest = manifest.DeepCopy()
	unstructured.RemoveNestedField(manifest.Object, "spec", desired.TTL)
	return manifest
}
