package engine

import (
	"context"
	"maps"
	"sync"
	"time"
)

// clients are the clients of the external API, by scope: one that all objects share, or those that
// a [Connector] distinguishes. A scope exists as long as an object uses it.
type clients struct {
	// connector is nil if all objects share a client, which connect makes.
	connector *Connector
	connect   connectFunc
	// wake requeues an object.
	wake func(key objectKey, after time.Duration)

	mu sync.Mutex
	// process ends with the process; nil until it is known.
	process context.Context //nolint:containedctx // clients live as long as the process
	scopes  map[string]*shared
	users   map[objectKey]user
	swept   time.Time
}

// user is the scope that an object uses, and when it last did.
type user struct {
	scope   string
	visited time.Time
}

// shared is what the objects of one scope share: the client, and whether it may be used now.
type shared struct {
	name       string
	connection connection
	scope      scope
	users      int
}

// of returns the scope that an object uses from now on.
func (c *clients) of(key objectKey, name string) *shared {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.scopes[name]
	if s == nil {
		s = &shared{name: name, scope: scope{wake: c.wake}, connection: connection{connect: c.connect, process: c.process}}
		if c.scopes == nil {
			c.scopes, c.users = map[string]*shared{}, map[objectKey]user{}
		}
		c.scopes[name] = s
	}
	if c.connector == nil { // there is only one scope, which stays
		return s
	}
	before, known := c.users[key]
	c.users[key] = user{name, now}
	if !known || before.scope != name {
		s.users++
	}
	if known && before.scope != name {
		c.leave(key, before.scope, now)
	}
	c.sweep(now)
	return s
}

// forget drops a deleted object.
func (c *clients) forget(key objectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.connector == nil {
		for _, s := range c.scopes {
			s.scope.forget(key)
		}
		return
	}
	if u, known := c.users[key]; known {
		delete(c.users, key)
		c.leave(key, u.scope, time.Now())
	}
}

// leave takes an object out of a scope that it no longer uses.
func (c *clients) leave(key objectKey, name string, now time.Time) {
	s := c.scopes[name]
	s.scope.forget(key)
	s.users--
	c.drop(s, now)
}

// drop ends a scope that no object uses. A scope in which the API asked for fewer calls is kept
// until that is over, and one whose Connect hangs until Connect returns: deleting an object and
// creating it again must not bypass either.
func (c *clients) drop(s *shared, now time.Time) {
	if s.users == 0 && !s.scope.waits(now) && s.connection.discard() {
		delete(c.scopes, s.name)
	}
}

// sweep drops, from time to time, objects that disappeared without their cleanup, and scopes that
// drop had kept.
func (c *clients) sweep(now time.Time) {
	if now.Sub(c.swept) <= releasedKept {
		return
	}
	c.swept = now
	for key, u := range maps.Clone(c.users) {
		if now.Sub(u.visited) > trackKept {
			delete(c.users, key)
			c.leave(key, u.scope, now)
		}
	}
	for _, s := range maps.Clone(c.scopes) {
		c.drop(s, now)
	}
}

// endWith ends the contexts of all clients when the process ends, once no call uses them.
func (c *clients) endWith(process context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.process = process
	for _, s := range c.scopes {
		s.connection.livesIn(process)
	}
	context.AfterFunc(process, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.scopes {
			s.connection.processEnds()
		}
	})
}
