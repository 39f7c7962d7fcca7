package kubesim

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/trimtab-dev/trimtab/kubesim/internal/actor"
)

// maxSettle is more writes than the controllers of any sensible cluster want.
const maxSettle = 10_000

// controllers are the cluster's own, one at a time.
type controllers struct {
	mu     sync.Mutex
	actors *actor.Actors
}

// Settle lets the cluster's own controllers, the garbage collector and the deletion of
// namespaces, do all that is to be done now. It is needed with [Options.Manual] only.
func (c *Cluster) Settle(ctx context.Context) error {
	c.controllers.mu.Lock()
	defer c.controllers.mu.Unlock()
	for range maxSettle {
		wanted := c.controllers.actors.Enabled()
		if len(wanted) == 0 {
			return nil
		}
		next, err := c.next(wanted)
		if err != nil {
			return err
		}
		if err := next.Do(ctx); err != nil {
			return fmt.Errorf("kubesim: %s: %s: %w", next.By, next.What, err)
		}
	}
	return fmt.Errorf("kubesim: the cluster's controllers still had something to do after %d writes; is an object owned in a circle?", maxSettle)
}

// next is the action that comes first.
func (c *Cluster) next(wanted []actor.Action) (actor.Action, error) {
	if c.pick == nil {
		return wanted[0], nil
	}
	var what []string
	for _, a := range wanted {
		what = append(what, a.What)
	}
	i := c.pick(what)
	if i < 0 || i >= len(wanted) {
		return actor.Action{}, fmt.Errorf("kubesim: Options.Pick returned %d for a list of %d; it must return an index into it", i, len(wanted))
	}
	return wanted[i], nil
}

// settled lets the controllers act after each write, before its answer arrives.
func (c *Cluster) settled(info *request.RequestInfo, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
	answer, err := send()
	if r.Context().Value(webhookKey{}) != nil {
		return answer, err
	}
	if !slices.Contains([]string{"get", "list", "watch"}, info.Verb) {
		// A test that is over must not be told anything any more.
		if failed := c.Settle(context.WithoutCancel(r.Context())); failed != nil && c.t.Context().Err() == nil {
			c.t.Error(failed)
		}
	}
	return answer, err
}
