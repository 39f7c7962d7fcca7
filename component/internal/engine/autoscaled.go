package engine

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// autoscaled leaves the replicas of members to the autoscalers of the cluster that scale them, also to those
// that are no dependents. It asks for autoscalers only if somebody else wrote the replicas of a member.
func (p *pass) autoscaled(ctx context.Context) {
	waiting, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	asked := false
	for _, m := range p.members {
		if m.wanted == nil || m.wanted.Twin == "" || m.node || m.unobserved != nil {
			continue
		}
		before := m.item.Digest == m.wanted.Twin
		live, found := p.Target.Cache.Get(liveKey(m.item))
		switch {
		case !found || !p.owns(m, live):
			m.autoscaled = before
		case !live.Replicas:
			asked = true
			m.autoscaled = p.isAutoscaled(waiting, m, before)
		}
		if m.autoscaled {
			wanted := m.wanted.Autoscaled(p.Name)
			m.wanted = &wanted
		}
	}
	p.Target.Cache.KeepAutoscaled(p.user(), asked)
}

// isAutoscaled reports whether an autoscaler of the cluster scales a member. If that is not known, it is as it
// was before. Who may not list autoscalers sees none.
func (p *pass) isAutoscaled(ctx context.Context, m *member, before bool) bool {
	scaled, err := p.Target.Cache.Autoscaled(ctx, p.user(), liveKey(m.item))
	switch {
	case err == nil:
		return scaled
	case apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return false
	}
	return before
}
