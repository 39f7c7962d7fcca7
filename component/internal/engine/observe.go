package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/component/internal/projection"
	"github.com/trimtab-dev/trimtab/component/internal/target"
)

// syncTime is how long a pass waits for informers that are new. It is short: the objects of a kind that
// cannot be watched hold no other object up.
const syncTime = 5 * time.Second

// watch sees to it that all dependents are known. Of a kind that the target does not serve there are
// none. Members of which nothing is known are left alone.
func (p *pass) watch(ctx context.Context) {
	waiting, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	type place struct {
		schema.GroupVersionKind
		namespace string
	}
	places := map[place][]*member{}
	for _, m := range p.members {
		if m.node {
			continue
		}
		at := place{ref(m.item).GroupVersionKind, m.item.Namespace}
		places[at] = append(places[at], m)
	}
	var all sync.WaitGroup
	for at, members := range places {
		if p.unborn(at.GroupVersionKind, members) {
			continue
		}
		all.Go(func() {
			err := p.Target.Cache.Use(waiting, p.user(), at.GroupVersionKind, at.namespace)
			switch {
			case err == nil, meta.IsNoMatchError(err):
			case errors.Is(err, context.DeadlineExceeded):
				p.ask(ctx, members)
			case apierrors.IsForbidden(err), target.Unreachable(err):
				for _, m := range members {
					m.unobserved, m.failed = err, fmt.Errorf("observe %s: %w", ref(m.item), err)
				}
			default: // discovery of the kind's group failed
				for _, m := range members {
					m.unobserved, m.again = err, unwatched
				}
			}
		})
	}
	all.Wait()
}

// user is the component as the one who uses watches.
func (p *pass) user() projection.User {
	return projection.User{NamespacedName: p.c.NamespacedName, UID: p.c.UID}
}

// unwatch gives up the watches of kinds of which the component has no dependents any more.
func (p *pass) unwatch() {
	keys := make([]projection.Key, 0, len(p.members))
	for _, m := range p.members {
		if !m.forgotten && !m.node {
			keys = append(keys, liveKey(m.item))
		}
	}
	p.Target.Cache.Keep(p.user(), keys)
}

// ask asks the API server about members whose kind is not known yet. It may never be: if the definition of
// the kind is gone, or if the operator may not watch it.
func (p *pass) ask(ctx context.Context, members []*member) {
	for _, m := range members {
		switch _, err := p.Target.Client.Get(ctx, ref(m.item)); {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		case err != nil:
			m.unobserved, m.failed = err, fmt.Errorf("observe %s: %w", ref(m.item), err)
		default:
			m.unobserved, m.again = fmt.Errorf("objects of kind %s are not watched yet", m.item.Kind), unwatched
		}
	}
}
