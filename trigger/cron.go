package trigger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

// Cron wakes objects at the times of a schedule: five fields, such as "30 3 * * 1-5" for half past three from Monday to
// Friday, or a word such as @daily or "@every 1h". Times are in UTC, unless the schedule begins with a time zone, as in
// "CRON_TZ=Europe/Berlin 30 3 * * *".
//
// Only a process that leads wakes objects. A time that passed while it stood by counts when it leads; one at which no
// process ran is missed. A wake-up does not count as an event of the object: a pending retry stays pending. Pass a Cron
// by pointer to one controller. For a delay that follows from a pass there is loop.After.
type Cron[T client.Object] struct {
	// Name is the source's name in logs, metrics and /readyz. Empty means one made of the controller's name.
	Name string
	// Schedule is the schedule of all objects. An invalid one is an error at the start.
	Schedule string
	// Of returns the schedule of one object, usually from its spec; empty means none. It must depend on the spec of obj
	// alone and return at once. An object with an invalid one is not woken; [Cron.Err] says why. Exactly one of Schedule
	// and Of is required.
	Of func(obj T) string
	// Within spreads the wake-ups of different objects over this time from that of the schedule. Zero means that all
	// come at once.
	Within time.Duration

	wakes  *wakes[T]
	health *health

	mu    sync.Mutex
	plans map[types.NamespacedName]*plan
}

// plan is when an object is woken next.
type plan struct {
	uid  types.UID
	text string
	// times is nil if there are none.
	times cron.Schedule
	next  time.Time
	err   error
}

func (*Cron[T]) source(T) {}

// Err returns what is wrong with the schedule of an object, for its status: it is not retried, because only a change of
// the object can help. Nil means that the object is woken as it asks.
func (c *Cron[T]) Err(obj T) error {
	_, err := c.plan(obj, time.Time{})
	return err
}

// Next returns when the schedule of an object wakes it next, after now. It is zero if that is never.
func (c *Cron[T]) Next(obj T, now time.Time) time.Time {
	times, err := c.plan(obj, now)
	if err != nil || times == nil {
		return time.Time{}
	}
	return times.Next(now.UTC())
}

// plan asks the author for the schedule of an object.
func (c *Cron[T]) plan(obj T, now time.Time) (cron.Schedule, error) {
	text, err := c.text(obj)
	if err != nil {
		return nil, err
	}
	return parse(text, now)
}

func (c *Cron[T]) text(obj T) (text string, err error) {
	if c.Of == nil {
		return c.Schedule, nil
	}
	err = guard.Aside(code, "Of", func() { text = c.Of(obj) })
	return text, err
}

// parse returns the times of a schedule after now, and nil for an empty one.
func parse(text string, now time.Time) (cron.Schedule, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // documented above
	}
	times, err := guard.Call("the parser of schedules", "Parse", func() (cron.Schedule, error) { return cron.ParseStandard(text) })
	if _, crashed := errors.AsType[*guard.PanicError](err); crashed {
		err = errors.New("it cannot be read") // of a time zone without anything after it
	}
	if err != nil {
		return nil, fmt.Errorf(`schedule %q: %w; write five fields, such as "30 3 * * 1-5", or @daily`, text, err)
	}
	if times.Next(now.UTC()).IsZero() {
		return nil, fmt.Errorf("schedule %q: there is no such day", text)
	}
	return times, nil
}

// Check implements [Source].
func (c *Cron[T]) Check() error {
	switch {
	case (c.Schedule == "") == (c.Of == nil):
		return errors.New("a trigger.Cron needs either Schedule, for all objects, or Of, which returns that of one")
	case c.Within < 0:
		return fmt.Errorf("a trigger.Cron cannot spread wake-ups within %s; leave Within zero", c.Within)
	case c.wakes != nil:
		return errors.New("a trigger.Cron is the source of two controllers; make one for each")
	}
	_, err := parse(c.Schedule, time.Now())
	return err
}

// Watches implements [Source]: nothing but the controller's own objects.
func (*Cron[T]) Watches() []client.Object { return nil }

// Needs implements [Source].
func (*Cron[T]) Needs() []Need { return nil }

// Attach implements [Source].
func (c *Cron[T]) Attach(target Target[T]) (err error) {
	c.plans = map[types.NamespacedName]*plan{}
	if c.wakes, err = attachWakes(target); err != nil {
		return err
	}
	if c.health, err = attachHealth(target, c.Name, tolerated, nil); err != nil {
		return err
	}
	each := newSchedule(target, c.due)
	if err := each.watch(c.appears, c.goes); err != nil {
		return err
	}
	return each.run(1)
}

// appears plans an object that is new or that has a new spec, and reports whether it is woken at some time.
func (c *Cron[T]) appears(obj T) bool {
	text, err := c.text(obj)
	now, key := time.Now(), client.ObjectKeyFromObject(obj)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.plans[key]; ok && err == nil && known.uid == obj.GetUID() && known.text == text {
		return false // it is planned already
	}
	p := &plan{uid: obj.GetUID(), text: text, err: err}
	if err == nil {
		p.times, p.err = parse(text, now)
	}
	if p.err != nil {
		c.health.log.V(1).Info("an object is not woken by its schedule", "object", key, "error", p.err.Error())
	}
	c.plans[key] = p
	if p.times == nil {
		return false
	}
	p.next = p.times.Next(now.UTC())
	return true
}

func (c *Cron[T]) goes(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.plans, key)
}

// longestWait is how long a schedule goes without a look at the clock, which may have been set.
const longestWait = 10 * time.Minute

// due wakes an object if its time has come, and returns after how long to ask again.
func (c *Cron[T]) due(_ context.Context, obj T, share float64) time.Duration {
	key := client.ObjectKeyFromObject(obj)
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.plans[key]
	if !ok || p.uid != obj.GetUID() || p.times == nil {
		return 0
	}
	later := time.Duration(float64(c.Within) * share)
	if wait := time.Until(p.next.Add(later)); wait > 0 {
		return min(wait, longestWait)
	}
	p.next = p.times.Next(time.Now().Add(-later).UTC())
	c.wakes.put(key)
	return min(max(time.Until(p.next.Add(later)), 1), longestWait)
}
