package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/graph"
	"github.com/trimtab-dev/trimtab/internal/apply"
)

// rejectedFor is how long a manifest is not sent again that the API server calls invalid, if nothing changes, and
// customRejectedFor that of a custom resource, whose definition somebody else may be about to change.
const (
	rejectedFor       = 10 * time.Minute
	customRejectedFor = time.Minute
)

// rejection is a manifest that the API server called invalid.
type rejection struct {
	// of is what the answer depends on: the manifest, and the object that it was to change.
	of  string
	at  time.Time
	err *apply.InvalidError
}

// about is what the API server's answer to a member's manifest depends on, as far as that is known. A pass that was
// asked for always sends it.
func (p *pass) about(m *member) string {
	live, _ := p.Target.Cache.Get(liveKey(m.item))
	sent := []any{m.wanted.Item.Policies, m.wanted.AcceptDataLoss, m.manifest(), m.wanted.Initial}
	text, err := json.Marshal(sent)
	if err != nil { // then it was not sent either
		return ""
	}
	return fmt.Sprintf("%x %s %s %s", sha256.Sum256(text), p.c.Annotations[api.AnnotationReconcile], live.UID, live.Version)
}

// rejectable reports whether an invalid manifest stays so. That of an instance of a type that the component defines
// becomes valid when the API server has taken over the type's newest schema.
func (p *pass) rejectable(m *member) bool { return m.wanted != nil && !m.wanted.Managed && !m.node }

// pauseOf is how long the manifest of a member is not sent again.
func pauseOf(m *member) time.Duration {
	if scheme.Scheme.Recognizes(ref(m.item).GroupVersionKind) {
		return rejectedFor
	}
	return customRejectedFor
}

// rejected returns the API server's answer to the manifest of a member, if it is still the answer.
func (p *pass) rejected(m *member) error {
	r, found := p.rejections.get(p.fighter(m))
	if !found || !p.rejectable(m) {
		return nil
	}
	left := r.at.Add(pauseOf(m)).Sub(p.now())
	if r.of != p.about(m) || left <= 0 {
		return nil
	}
	m.again = left
	return r.err
}

// reject takes over the answer to a write of a member.
func (p *pass) reject(m *member, err error) error {
	invalid := apply.Invalid(err, p.Name)
	if invalid == nil {
		p.rejections.drop(p.fighter(m))
		return err
	}
	if p.rejectable(m) {
		p.rejections.set(p.fighter(m), rejection{of: p.about(m), at: p.now(), err: invalid})
		m.again = pauseOf(m)
	}
	return invalid
}

// apply performs an action that sends the manifest of a member.
func (p *pass) apply(ctx context.Context, m *member, action graph.Action) error {
	if err := p.rejected(m); err != nil {
		return err
	}
	if action == graph.Create {
		return p.reject(m, p.performCreate(ctx, m))
	}
	return p.reject(m, p.performUpdate(ctx, m))
}

// stalled reports whether all that went wrong is manifests that are not sent again before something changes.
func (p *pass) stalled(failed map[graph.Key]error) bool {
	for key, err := range failed {
		if _, invalid := errors.AsType[*apply.InvalidError](err); !invalid || !p.rejectable(p.members[key]) {
			return false
		}
	}
	return len(failed) > 0
}
