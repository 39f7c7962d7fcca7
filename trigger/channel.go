package trigger

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/runnable"
)

// Channel receives events of type E from a Go channel, keeps the newest of each object for the reconciler, and
// wakes the objects that they concern. It receives from the start of the manager on, also in a process that does
// not lead; such a process wakes the objects when it leads.
//
// A wake-up does not count as an event of the object: a pending retry stays pending. Pass a Channel by pointer to
// one controller; use [Channel.Get] in its passes.
type Channel[T client.Object, E any] struct {
	// Name is the source's name in logs, metrics and /readyz. Empty means one made of the controller's name.
	Name string
	// From is where events come from. Required. When it is closed, no more events come.
	From <-chan E
	// Wakes returns the objects that an event concerns. Required. Keys without an object are ignored. It must
	// return at once. If it panics, all objects are woken, and the event is not kept.
	Wakes func(event E) []types.NamespacedName
	// Keep is for how many objects that do not exist, or not yet, the newest event is kept. Zero means 10,000.
	// The oldest is dropped first; if it might concern an object after all, all objects are woken.
	Keep int

	newest newest[T, E]
}

func (*Channel[T, E]) source(T) {}

// Get returns the newest event that concerns an object, and whether there was one. It is forgotten when the object
// is deleted and when the process ends.
func (c *Channel[T, E]) Get(obj T) (E, bool) { return c.newest.get(obj) }

// Check implements [Source].
func (c *Channel[T, E]) Check() error {
	switch {
	case c.From == nil || c.Wakes == nil:
		return errors.New("a trigger.Channel needs From, a channel, and Wakes, which says which objects an event concerns")
	case c.Keep < 0:
		return fmt.Errorf("a trigger.Channel cannot keep %d events; leave Keep zero for 10,000", c.Keep)
	case c.newest.wakes != nil:
		return errors.New("a trigger.Channel is the source of two controllers; make one for each")
	}
	return nil
}

// Watches implements [Source]: nothing but the controller's own objects.
func (*Channel[T, E]) Watches() []client.Object { return nil }

// Needs implements [Source].
func (*Channel[T, E]) Needs() []Need { return nil }

// Attach implements [Source].
func (c *Channel[T, E]) Attach(target Target[T]) error {
	if err := c.newest.attach(target, c.Name, c.Keep, c.Wakes); err != nil {
		return err
	}
	return target.Manager.Add(runnable.Standing(func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case e, open := <-c.From:
				if !open {
					return nil
				}
				_ = c.newest.take(ctx, e) // it is logged
			}
		}
	}))
}
