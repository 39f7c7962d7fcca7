package engine

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/component/internal/projection"
	"github.com/trimtab-dev/trimtab/graph"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// node is what the graph needs to know of a member.
func (p *pass) node(key graph.Key, m *member) graph.Node {
	n := graph.Node{
		Key: key, Wanted: m.wanted != nil,
		Apply: m.applyWave(), Delete: m.deleteWave(),
		DeleteRank: desired.DeleteRank(m.item), Orphan: p.orphaned(m), Facts: p.facts(m),
	}
	for _, need := range m.item.DependsOn {
		n.Needs = append(n.Needs, graph.Key(need))
	}
	if m.wanted != nil {
		n.Rank = m.wanted.Rank
		if m.wanted.Purge != nil {
			n.Purge = new(purgeWave(*m.wanted.Purge))
		}
	}
	return n
}

// orphaned reports whether a member that is to go is released instead of deleted.
func (p *pass) orphaned(m *member) bool {
	if p.abandoned(m) {
		return true
	}
	switch m.item.DeletePolicy {
	case api.DeletePolicyOrphan:
		return true
	case api.DeletePolicyOrphanOnApply:
		return !p.deleting
	case api.DeletePolicyOrphanOnDelete:
		return p.deleting
	case api.DeletePolicyDelete:
	}
	return false
}

// facts are what is known of a member now.
func (p *pass) facts(m *member) graph.Facts {
	if m.node {
		return p.nodeFacts(m)
	}
	live, found := p.Target.Cache.Get(liveKey(m.item))
	f := graph.Facts{
		Recorded: m.recorded, Applied: m.wanted != nil && m.item.Digest == m.wanted.Item.Digest,
	}
	if m.forgotten {
		return graph.Facts{}
	}
	f.Held = m.held
	if found && (m.foreign || !p.owns(m, live)) {
		if found = false; m.wanted != nil && m.refused == "" {
			m.refused = p.foreign(m, live)
		}
	}
	f.Refused = m.refused
	f.Completed, f.Ended = m.completed, m.ended() || m.over(live, found)
	switch {
	case m.unobserved != nil && p.abandoned(m):
		f.Presence = graph.Absent // as far as anybody cares
	case m.unobserved != nil:
		f.Presence = graph.Unknown
	case !found:
		f.Presence = graph.Absent
	case live.Leaving:
		f.Presence = graph.Leaving
	default:
		f.Presence = graph.Present
	}
	if m.wanted != nil {
		f.Change = p.change(m, live, found)
		f.Health = healthOf(live.Health.Status)
	}
	p.restrain(m, &f, live, found)
	if m.corrects() && f.Refused == "" {
		f.Refused = p.contend(m, f.Change != graph.NoChange || !found && !f.Completed)
	}
	return f
}

// change is what brings a member to its manifest.
func (p *pass) change(m *member, live projection.Object, found bool) graph.Change {
	wanted, twin := m.wanted.Item.Digest, m.wanted.Twin
	changed := m.item.Digest != wanted
	switch {
	case found && m.mayExpire() && !changed && p.modeOf(m) == api.ModeFull:
		return graph.NeedsUpdate
	case found && m.once() && live.Owner == desired.OwnerAnnotation(p.c.Owner, string(p.c.UID), m.item.Key()):
		return graph.NoChange
	case found && m.once():
		return graph.NeedsUpdate // of its owner alone
	case !found && !changed:
		return graph.NoChange // nothing but its absence
	case !found:
		return graph.NeedsUpdate
	case m.recreate, changed && live.Digest != wanted && live.Digest != twin && m.item.UpdatePolicy == api.UpdatePolicyRecreate:
		return graph.NeedsRecreate
	case changed, live.Digest != wanted, live.Owner != desired.OwnerAnnotation(p.c.Owner, string(p.c.UID), m.item.Key()), p.drifted(m, live):
		return graph.NeedsUpdate
	}
	return graph.NoChange
}

// once reports whether a member has been written and is never written again.
func (m *member) once() bool {
	return m.item.ReconcilePolicy == api.ReconcilePolicyOnce && m.item.Digest != ""
}

func parseFingerprint(text string) (fingerprint.Print, string) {
	text, version, _ := strings.Cut(text, "@")
	parsed, err := fingerprint.Parse(text)
	if err != nil { // of another release, or of somebody's making: like none
		return fingerprint.Print{}, version
	}
	return parsed, version
}

// owns reports whether an object that exists is the one that a member stands for.
func (p *pass) owns(m *member, live projection.Object) bool { return p.ownsAs(m, live.Owner, live.UID) }

// ownsRead is owns for an object that was read.
func (p *pass) ownsRead(m *member, live metav1.Object) bool {
	return p.ownsAs(m, p.ownerOf(live), live.GetUID())
}

// ownsAs is owns for an owner annotation and a UID. That of component-operator-runtime, with which the operator may have
// been built before, is the owner alone: it has neither the UID of the component nor the key of the object. It counts if
// the inventory has the object: with this UID, or with a digest and no UID, which only component-operator-runtime records.
func (p *pass) ownsAs(m *member, annotation string, uid types.UID) bool {
	recorded := m.item.UID == string(uid) || m.item.UID == "" && m.item.Digest != ""
	return p.mine(annotation, m.item.Key()) || annotation == p.c.Owner && recorded
}

// mine reports whether an owner annotation says that an object with a key is the component's own. That of an
// earlier component of the same name is, if the component says that it is that one, restored.
func (p *pass) mine(annotation, key string) bool {
	id, uid, own, ok := desired.ParseOwner(annotation)
	return ok && id == p.c.Owner && own == key && uid != "" && (uid == string(p.c.UID) || uid == p.c.Annotations[restoredKey(p.Name)])
}

// restoredKey is the annotation of a component that was restored from a backup. It names the UID that it had.
func restoredKey(name string) string { return name + "/restored-from" }

// foreign says why a live object that is not the member's own is not taken over. Empty means that it is.
func (p *pass) foreign(m *member, live projection.Object) string {
	switch {
	case m.item.UID == string(live.UID) && !p.namesake(live.Owner):
		id, _, _, _ := desired.ParseOwner(live.Owner)
		return fmt.Sprintf("was taken over by %s; remove the object from one of the two", cmp.Or(id, "somebody who removed its owner"))
	case p.adoptable(m, live.Owner):
		return ""
	}
	return p.refusal(m, live.Owner)
}

// namesake reports whether an owner annotation names an earlier component of the same name.
func (p *pass) namesake(annotation string) bool {
	id, uid, _, ok := desired.ParseOwner(annotation)
	return ok && id == p.c.Owner && uid != "" && uid != string(p.c.UID)
}

func healthOf(s health.Status) graph.Health {
	switch s {
	case health.Current:
		return graph.Current
	case health.Failed:
		return graph.Failed
	case health.InProgress, health.Terminating:
		return graph.InProgress
	case health.Unknown:
	}
	return graph.HealthUnknown
}
