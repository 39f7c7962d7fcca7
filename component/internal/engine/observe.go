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
	kinds := map[schema.GroupVersionKind][]*member{}
	for _, m := range p.members {
		if m.node {
			continue
		}
		kind := ref(m.item).GroupVersionKind
		kinds[kind] = append(kinds[kind], m)
	}
	var all sync.WaitGroup
	for kind, members := range kinds {
		if p.unborn(kind, members) {
			continue
		}
		all.Go(func() {
			err := p.Target.Cache.Watch(waiting, kind)
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
