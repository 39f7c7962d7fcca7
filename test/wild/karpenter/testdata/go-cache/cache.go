// Package cache has what operators use of github.com/patrickmn/go-cache, without its goroutine: that one ends
// when the garbage collector finds the cache, which stops the process if the cache is of a simulated one.
package cache

import (
	"sync"
	"time"
)

// These mean that an item never expires, and that it expires when the cache says.
const (
	NoExpiration      time.Duration = -1
	DefaultExpiration time.Duration = 0
)

// Item is what is stored.
type Item struct {
	Object     any
	Expiration int64
}

// Cache keeps items until they expire.
type Cache struct {
	mu    sync.Mutex
	usual time.Duration
	items map[string]Item
}

// New returns a cache. Expired items are removed when they are read.
func New(usual, _ time.Duration) *Cache { return &Cache{usual: usual, items: map[string]Item{}} }

// Set stores an item.
func (c *Cache) Set(key string, value any, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(key, value, d)
}

func (c *Cache) set(key string, value any, d time.Duration) {
	if d == DefaultExpiration {
		d = c.usual
	}
	i := Item{Object: value}
	if d > 0 {
		i.Expiration = time.Now().Add(d).UnixNano()
	}
	c.items[key] = i
}

// SetDefault stores an item for the usual time.
func (c *Cache) SetDefault(key string, value any) { c.Set(key, value, DefaultExpiration) }

// Get returns an item that has not expired.
func (c *Cache) Get(key string) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.items[key]
	if ok && i.Expiration > 0 && time.Now().UnixNano() > i.Expiration {
		delete(c.items, key)
		return nil, false
	}
	return i.Object, ok
}

// Delete removes an item.
func (c *Cache) Delete(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.items, key)
}

// Flush removes all items.
func (c *Cache) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.items)
}
