package engine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	things "github.com/trimtab-dev/trimtab/internal/thing"
)

// offices are bureaus by scope, with a connector to them.
type offices map[string]*bureau

// clients returns the clients of the offices; there are none yet.
func (o offices) clients() *clients {
	return &clients{connector: &Connector{Connect: func(ctx context.Context, scope string, _ client.Object) (any, string, error) {
		if o[scope] == nil {
			o[scope] = &bureau{start: time.Now()}
		}
		made, err := o[scope].connect(ctx)
		return made, scope, err
	}}}
}

func keyOf(name string) objectKey { return objectKey{Name: name} }

// take makes an object use the client of a scope.
func take(t *testing.T, c *clients, name, scope string) *connected {
	t.Helper()
	k, err := c.of(keyOf(name), scope).connection.getBy(t.Context(), connectDeadline, "", connecting(c.connector, &login{from: &things.Thing{}}, scope, nil))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// wantScopes fails the test unless that many scopes and objects are remembered.
func wantScopes(t *testing.T, c *clients, scopes, users int) {
	t.Helper()
	if len(c.scopes) != scopes || len(c.users) != users {
		t.Errorf("%d scopes and %d objects are remembered, want %d and %d", len(c.scopes), len(c.users), scopes, users)
	}
}

// TestScopesEndWithTheirObjects checks that a scope exists as long as an object uses it, and that
// its client is closed after the last call.
func TestScopesEndWithTheirObjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := offices{}
		c := o.clients()
		a, b, other := take(t, c, "a", "east"), take(t, c, "b", "east"), take(t, c, "c", "west")
		if a.client != b.client || a.client == other.client {
			t.Fatal("objects of one scope share a client, and no others do")
		}
		a.release()
		b.release()
		other.release()
		c.forget(keyOf("a"))
		c.forget(keyOf("a"))
		c.forget(keyOf("nobody"))
		again := take(t, c, "b", "east")
		if again.client != b.client || o["east"].made != 1 {
			t.Error("an object is left, and the client was made again")
		}
		c.forget(keyOf("b"))
		synctest.Wait()
		if o["east"].closed.Load() != 0 || accountOf(a).ctx.Err() != nil {
			t.Error("the client was closed while a call used it")
		}
		again.release()
		synctest.Wait()
		if o["east"].closed.Load() != 1 || accountOf(a).ctx.Err() == nil {
			t.Error("the client of a scope without objects was not closed")
		}
		if o["west"].closed.Load() != 0 || accountOf(other).ctx.Err() != nil {
			t.Error("the client of another scope was closed")
		}
		wantScopes(t, c, 1, 1)
		take(t, c, "c", "east").release() // it moves
		synctest.Wait()
		if o["west"].closed.Load() != 1 || o["east"].made != 2 {
			t.Errorf("an object moved: %d of the clients it left were closed, %d made where it is now", o["west"].closed.Load(), o["east"].made)
		}
		wantScopes(t, c, 1, 1)
	})
}

// TestScopesAreBounded checks that objects that disappear without their cleanup are forgotten
// eventually.
func TestScopesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := offices{}
		c := o.clients()
		for i := range 100 {
			take(t, c, fmt.Sprint(i), fmt.Sprint("s", i)).release()
		}
		wantScopes(t, c, 100, 100)
		for range 10 {
			<-time.After(trackKept / 8)
			take(t, c, "7", "s7").release() // used now and then
		}
		take(t, c, "new", "s").release()
		synctest.Wait()
		wantScopes(t, c, 2, 2)
		if o["s1"].closed.Load() != 1 || o["s7"].closed.Load() != 0 || o["s7"].made != 1 {
			t.Error("the wrong clients were closed")
		}
	})
}

// TestThrottleOutlivesItsObjects checks that an object that is created again in a scope waits as
// long as the deleted one would have.
func TestThrottleOutlivesItsObjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := offices{}.clients()
		take(t, c, "b", "west").release()
		take(t, c, "a", "east").release()
		now := time.Now()
		c.of(keyOf("a"), "east").scope.answered(keyOf("a"), answerThrottled, now, now, 5*time.Minute, "")
		c.forget(keyOf("a"))
		if shut, _ := c.of(keyOf("a"), "east").scope.state(keyOf("a"), time.Now()); shut != decide.ScopeThrottled {
			t.Errorf("the scope is %v for an object that was created again", shut)
		}
		if shut, _ := c.of(keyOf("b"), "west").scope.state(keyOf("b"), time.Now()); shut != decide.ScopeOpen {
			t.Errorf("another scope is %v", shut)
		}
		c.forget(keyOf("a"))
		wantScopes(t, c, 2, 1)
		<-time.After(20 * time.Minute)
		take(t, c, "b", "west").release()
		wantScopes(t, c, 1, 1)
	})
}

// TestConnectThatHangsOutlivesItsObjects checks that Connect is not called again for a scope
// before it has returned, whatever is deleted and created meanwhile.
func TestConnectThatHangsOutlivesItsObjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		o := offices{"east": {start: time.Now(), before: func(context.Context) error { <-let; return nil }}}
		c := o.clients()
		for i := range 5 {
			key := keyOf(fmt.Sprint(i))
			if _, err := c.of(key, "east").connection.getBy(t.Context(), connectDeadline, "", connecting(c.connector, &login{from: &things.Thing{}}, "east", nil)); err == nil {
				t.Error("a client from a call that has not returned")
			}
			c.forget(key)
		}
		close(let)
		synctest.Wait()
		if o["east"].made != 1 {
			t.Errorf("Connect was called %d times", o["east"].made)
		}
		<-time.After(time.Hour)
		take(t, c, "b", "west").release()
		wantScopes(t, c, 1, 1)
	})
}

// TestScopesEndWithTheProcess checks that the end of the process closes no client, because a
// shared one may be in use.
func TestScopesEndWithTheProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := offices{}.clients()
		before := take(t, c, "a", "east")
		process, stop := context.WithCancel(t.Context())
		c.endWith(process)
		after := take(t, c, "b", "west")
		before.release()
		after.release()
		stop()
		synctest.Wait()
		for _, k := range []*connected{before, after} {
			if accountOf(k).ctx.Err() == nil || accountOf(k).closed.Load() != 0 {
				t.Error("the client's context outlives the process, or the client was closed")
			}
		}
	})
}

// TestOneScopeWithoutConnector checks that all objects share one scope, which stays when they are
// deleted.
func TestOneScopeWithoutConnector(t *testing.T) {
	t.Parallel()
	b := &bureau{start: time.Now()}
	c := &clients{connect: attach(b.connect, nil, Errors{})}
	s := c.of(keyOf("a"), "")
	clientOf(t, &s.connection).release()
	c.forget(keyOf("a"))
	if c.of(keyOf("b"), "") != s || len(c.users) != 0 {
		t.Error("the scope of all objects was given up, or objects are remembered")
	}
}
