package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

// account is a client that keeps its context, like those that renew tokens.
type account struct {
	ctx    context.Context
	number int
	closed *atomic.Int32
}

func (a *account) Close() error {
	a.closed.Add(1)
	return nil
}

// bureau makes accounts.
type bureau struct {
	made   int
	times  []time.Duration
	start  time.Time
	closed atomic.Int32
	before func(context.Context) error
}

func (b *bureau) connect(ctx context.Context) (any, error) {
	b.made++
	b.times = append(b.times, time.Since(b.start))
	if b.before != nil {
		if err := b.before(ctx); err != nil {
			return nil, err
		}
	}
	return &account{ctx: ctx, number: b.made, closed: &b.closed}, nil
}

func (b *bureau) connection() *connection {
	b.start = time.Now()
	return &connection{connect: attach(b.connect, nil, Errors{})}
}

// TestClientOfAnotherVersion: who waits while a client is made from other credentials does not get it.
func TestClientOfAnotherVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := func(version string) connectFunc {
			return func(ctx context.Context, _ string) (attached, error) {
				<-time.After(time.Second)
				_, end := context.WithCancel(ctx)
				return attached{client: version, version: version, end: end}, nil
			}
		}
		c := &connection{}
		got := map[string]chan any{"a": make(chan any, 1), "b": make(chan any, 1)}
		for version, ch := range got {
			go func() {
				k, err := c.getBy(t.Context(), connectDeadline, version, made(version))
				if err != nil {
					ch <- err
					return
				}
				defer k.release()
				ch <- k.client
			}()
		}
		for version, ch := range got {
			if client := <-ch; client != version {
				t.Errorf("version %s got %v", version, client)
			}
		}
	})
}

func accountOf(k *connected) *account {
	a, _ := k.client.(*account)
	return a
}

const connectDeadline = 10 * time.Second

// clientOf returns the client, or fails the test.
func clientOf(t *testing.T, c *connection) *connected {
	t.Helper()
	k, err := c.get(t.Context(), connectDeadline)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestAClientKeepsItsContext checks that the context lives as long as the client, whatever becomes
// of the pass that connected, and ends with the process.
func TestAClientKeepsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(bureau).connection()
		process, stop := context.WithCancel(t.Context())
		c.livesIn(process)
		context.AfterFunc(process, c.processEnds)
		pass, end := context.WithCancel(t.Context())
		k, err := c.get(pass, connectDeadline)
		if err != nil {
			t.Fatal(err)
		}
		end()
		k.release()
		<-time.After(time.Hour)
		if err := accountOf(k).ctx.Err(); err != nil {
			t.Errorf("an hour later the client's context says %v", err)
		}
		again := clientOf(t, c)
		stop()
		synctest.Wait()
		if err := accountOf(k).ctx.Err(); err != nil {
			t.Errorf("while a call uses it: %v", err)
		}
		again.release()
		if accountOf(k).ctx.Err() == nil {
			t.Error("the client's context outlives the process")
		}
	})
}

// TestARefusedClientIsReplaced checks that a client whose every call gets a 401 is replaced, ever
// more slowly, and that one that works again is kept.
func TestARefusedClientIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bureau{}
		c := b.connection()
		var first *connected
		for time.Since(b.start) < 5*time.Minute {
			k := clientOf(t, c)
			if first == nil {
				first = k
				k.retain() // a call that takes long
			}
			k.answered(&classification{class: decide.ClassDenied, credentials: true})
			k.release()
			<-time.After(100 * time.Millisecond)
		}
		if b.made < 5 || b.made > 12 {
			t.Errorf("%d clients in 5 min of refusals, at %v", b.made, b.times)
		}
		if got := int(b.closed.Load()); got != b.made-2 {
			t.Errorf("%d of %d clients closed; want all but the last and the one in use", got, b.made)
		}
		if accountOf(first).ctx.Err() != nil {
			t.Error("a client ended while a call used it")
		}
		first.release()
		synctest.Wait()
		if got := int(b.closed.Load()); got != b.made-1 || accountOf(first).ctx.Err() == nil {
			t.Errorf("%d of %d clients closed, the first ended: %t", got, b.made, accountOf(first).ctx.Err() != nil)
		}
		made := b.made
		for range 100 {
			k := clientOf(t, c)
			k.answered(nil)
			k.release()
			<-time.After(time.Second)
		}
		if b.made > made+1 {
			t.Errorf("%d more clients while all is well", b.made-made)
		}
	})
}

// TestDenied checks what makes a client suspect.
func TestDenied(t *testing.T) {
	denied := &classification{class: decide.ClassDenied}
	tests := map[string]struct {
		why   string
		calls []*classification // nil succeeds
		made  int
	}{
		"403 for one object among many": {"the others' calls succeed", slices.Repeat([]*classification{denied, nil}, 50), 1},
		"403 for every call":            {"nobody is let in", slices.Repeat([]*classification{denied}, 3), 2},
		"one 401":                       {"the API does not know who asks", []*classification{{class: decide.ClassDenied, credentials: true}}, 2},
		"other errors":                  {"", slices.Repeat([]*classification{{class: decide.ClassTransient}}, 50), 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bureau{}
				c := b.connection()
				for _, what := range test.calls {
					k := clientOf(t, c)
					k.answered(what)
					k.release()
				}
				clientOf(t, c).release()
				if b.made != test.made {
					t.Errorf("%s: %d clients, want %d", test.why, b.made, test.made)
				}
			})
		})
	}
}

// TestARemakeThatFails checks that a client stays until there is a better one.
func TestARemakeThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bureau{}
		c := b.connection()
		k := clientOf(t, c)
		b.before = func(context.Context) error { return errors.New("no route") }
		k.answered(&classification{class: decide.ClassDenied, credentials: true})
		k.release()
		if again := clientOf(t, c); accountOf(again).number != 1 || b.closed.Load() != 0 {
			t.Errorf("client %d, %d closed", accountOf(again).number, b.closed.Load())
		}
	})
}

// TestConnectThatHangs covers a Connect that misses its deadline, or does not return at all.
func TestConnectThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bureau{before: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		c := b.connection()
		if _, err := c.get(t.Context(), connectDeadline); err == nil || time.Since(b.start) != connectDeadline {
			t.Errorf("after %s: %v", time.Since(b.start), err)
		}
		release := make(chan struct{})
		b.before = func(context.Context) error { <-release; return nil }
		<-time.After(connectPause)
		before := b.made
		for range 5 {
			if _, err := c.get(t.Context(), connectDeadline); err == nil {
				t.Error("a client out of nowhere")
			}
		}
		synctest.Wait()
		if b.made != before+1 {
			t.Errorf("%d calls of Connect while one has not returned", b.made-before)
		}
		close(release)
		b.before = nil
		synctest.Wait()
		<-time.After(connectPause)
		if k := clientOf(t, c); accountOf(k).ctx.Err() != nil {
			t.Errorf("the client is dead: %v", accountOf(k).ctx.Err())
		}
	})
}
