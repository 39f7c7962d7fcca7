package external

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// connection is the client of the external API, made once and shared.
type connection[C any] struct {
	connect func(context.Context) (C, error)

	mu     sync.Mutex
	client C
	ready  bool
	failed time.Time
	err    error
}

// connectPause is how long a failure to connect answers everybody who asks, so that a
// thousand objects do not knock a thousand times.
const connectPause = time.Second

// get returns the client, making it first if need be.
func (c *connection[C]) get(ctx context.Context, deadline time.Duration) (C, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ready:
		return c.client, nil
	case c.err != nil && time.Since(c.failed) < connectPause:
		return c.client, c.err
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	client, err := guard(func() (C, error) { return c.connect(ctx) })
	if err != nil {
		c.failed, c.err = time.Now(), err
		return c.client, err
	}
	c.client, c.ready, c.err = client, true, nil
	return c.client, nil
}

// guard turns a panic of an author's code into an error.
func guard[R any](f func() (R, error)) (result R, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicked{value: r, stack: debug.Stack()}
		}
	}()
	return f()
}

// panicked is a panic of a driver.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string {
	return fmt.Sprintf("the driver panicked: %v; the operator's log has the stack", p.value)
}

// tracks are what this process remembers, by UID. The zero value is empty.
type tracks struct {
	mu    sync.Mutex
	byUID map[types.UID]*track
	swept time.Time
}

const (
	// trackKept is how long an object may go unvisited before it is forgotten; its
	// finalizer was taken off behind our back.
	trackKept = 48 * time.Hour
	// releasedKept is how long an object is remembered that was let go.
	releasedKept = 10 * time.Minute
)

// of returns the track of an object. Only the pass over that object uses it.
func (t *tracks) of(uid types.UID) *track {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.byUID == nil {
		t.byUID = map[types.UID]*track{}
	}
	if now.Sub(t.swept) > releasedKept {
		t.swept = now
		maps.DeleteFunc(t.byUID, func(_ types.UID, x *track) bool { return x.idle(now) })
	}
	x, ok := t.byUID[uid]
	if !ok {
		x = &track{}
		t.byUID[uid] = x
	}
	x.visited = now
	return x
}

// idle tells whether nobody will ask for t again.
func (t *track) idle(now time.Time) bool {
	kept := trackKept
	if t.released {
		kept = releasedKept
	}
	return now.Sub(t.visited) > kept
}
