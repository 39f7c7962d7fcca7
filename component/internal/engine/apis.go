package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trimtab-dev/trimtab/component/internal/target"
)

const (
	// settling is how long after a change of a definition the API server may take to serve what it defines, and
	// unsettled how often it is asked in that time.
	settling, unsettled = 5 * time.Second, time.Second
	// apisAgain is how often the API server is asked if the user may not watch definitions.
	apisAgain = 10 * time.Minute
	// shared is how old an answer may be that another component got.
	shared = 500 * time.Millisecond
)

// served is what an API server served at a time.
type served struct {
	content [sha256.Size]byte
	at      time.Time
}

// APIs implements [Looks]. What adds APIs is watched from before it is asked.
func (l *lookups) APIs(ctx context.Context) (target.Served, error) {
	if l.isOver() {
		return target.Served{}, errLookupLate
	}
	waiting, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	if err := l.Target.Cache.FollowAPIs(waiting, l.user()); err != nil && !apierrors.IsForbidden(err) {
		return target.Served{}, fmt.Errorf("watch which APIs are served: %w", err)
	}
	if l.isOver() { // nobody would give up the watches
		l.follow(l.all(), false)
		return target.Served{}, errLookupLate
	}
	answer, now, err := l.askAPIs(ctx, shared)
	if err == nil && !l.isOver() {
		l.mu.Lock()
		l.apis = &now
		l.mu.Unlock()
	}
	return answer, err
}

// askAPIs asks what is served.
func (p *pass) askAPIs(ctx context.Context, recent time.Duration) (target.Served, served, error) {
	answer, at, err := p.Target.APIs.Get(ctx, recent)
	text := answer.Version + " " + strings.Join(answer.APIs, " ")
	return answer, served{sha256.Sum256([]byte(text)), at}, err
}

// settle has the API server asked again later if what it answered may not last.
func (p *pass) settle(s served) {
	switch {
	case !p.Target.Cache.FollowsAPIs(p.user()):
		p.unsettled = max(time.Until(s.at.Add(apisAgain)), unsettled)
	case p.Target.Cache.APIsChanged(s.at.Add(-settling)):
		p.unsettled = unsettled
	}
}

// sameAPIs reports whether the API server serves what it served then, and returns that as of now. It asks only if
// something may have changed.
func (p *pass) sameAPIs(ctx context.Context, then *served) (now *served, same bool) {
	if then == nil {
		return nil, true
	}
	recent := apisAgain
	if p.Target.Cache.FollowsAPIs(p.user()) {
		if !p.Target.Cache.APIsChanged(then.at.Add(-settling)) {
			return then, true
		}
		recent = shared
	}
	_, s, err := p.askAPIs(ctx, recent)
	if err != nil || s.content != then.content {
		return nil, false
	}
	p.settle(s)
	return &s, true
}
