package engine

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/projection"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// reading is how many objects are read at a time.
const reading = 16

// verify reads the objects of which somebody wrote and the projection does not tell what. Those that are
// as they were applied are not written; their new versions are remembered.
func (p *pass) verify(ctx context.Context) {
	var workers sync.WaitGroup
	free := make(chan struct{}, reading)
	for _, m := range p.members {
		live, found := p.Target.Cache.Get(liveKey(m.item))
		if !found || !p.suspicious(m, live) {
			continue
		}
		free <- struct{}{}
		workers.Go(func() {
			defer func() { <-free }()
			p.examine(ctx, m)
		})
	}
	workers.Wait()
}

// suspicious reports whether an object may have drifted, and only its values tell.
func (p *pass) suspicious(m *member, live projection.Object) bool {
	base, version := parseFingerprint(m.item.Fingerprint)
	switch {
	case m.wanted == nil, m.item.ReconcilePolicy == api.ReconcilePolicyOnce, m.item.Mode == api.ModeSuspended,
		live.Leaving, !p.owns(m, live), base == fingerprint.Print{},
		m.item.Digest != m.wanted.Item.Digest, live.Digest != m.item.Digest, string(live.UID) != m.item.UID:
		return false
	case projection.MetadataOnly(liveKey(m.item).GroupKind):
		return live.Print.Owned == base.Owned && live.Version != version
	case live.Translated:
		return live.Print.Owned == base.Owned && live.Print != base && !replaces(m)
	}
	return replaces(m) && live.Content != fingerprint.Hash{} && live.Content != base.Owned
}

// examine reads an object and takes its present version over if it is as it was applied. If it cannot be
// read, it counts as altered.
func (p *pass) examine(ctx context.Context, m *member) {
	m.altered = true
	live, err := p.Target.Client.Get(ctx, ref(m.item))
	if err != nil || string(live.GetUID()) != m.item.UID {
		return
	}
	if replaces(m) && p.complete(ctx, m) != nil {
		return
	}
	before, _ := parseFingerprint(m.item.Fingerprint)
	text := baselineOf(m, live, p.Target.Cache.Note(live))
	now, _ := parseFingerprint(text)
	if now.Values == before.Values && (now.Owned == before.Owned || !projection.MetadataOnly(liveKey(m.item).GroupKind)) {
		m.item.Fingerprint, m.altered = text, false
	}
}

// replaces reports whether a member is replaced with its manifest, so that the operator's entry in
// managedFields does not say what it wrote.
func replaces(m *member) bool {
	return m.wanted != nil && m.item.UpdatePolicy == api.UpdatePolicyReplace
}

// drifted reports whether what the operator wrote to an object is not there any more. Where only the
// values tell, it is what examine found: whatever is written meanwhile wakes the component once more.
func (p *pass) drifted(m *member, live projection.Object) bool {
	base, _ := parseFingerprint(m.item.Fingerprint)
	switch {
	case base == fingerprint.Print{}:
		return true
	case projection.MetadataOnly(liveKey(m.item).GroupKind), live.Translated && !replaces(m):
		return live.Print.Owned != base.Owned || m.altered
	case replaces(m) && live.Content != fingerprint.Hash{}:
		return m.altered
	}
	return live.Print != base
}

// baselineOf returns what the inventory records of an object after a write: its fingerprint. If the object
// is watched without its contents, the baseline includes its version, which shows later writes of others. If
// it was replaced, the baseline includes a hash of all its content.
func baselineOf(m *member, live *unstructured.Unstructured, o projection.Object) string {
	base, text := o.Print, ""
	metadataOnly := projection.MetadataOnly(liveKey(m.item).GroupKind)
	if metadataOnly {
		text = "@" + o.Version
	}
	if replaces(m) && (metadataOnly || o.Content != fingerprint.Hash{}) {
		base.Values = fingerprint.OfManifest(live.Object, m.manifest().Object)
		if !metadataOnly {
			base.Owned = o.Content
		}
	}
	return base.String() + text
}
