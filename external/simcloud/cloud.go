package simcloud

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options say what kind of cloud it is. The zero value takes names from its callers and does everything at once.
type Options struct {
	// AssignIDs: the cloud chooses the ids of items. Names are only for people then, and need not be unique.
	AssignIDs bool
	// Tokens: a create with the Idempotency-Key of an earlier one returns the item of that one.
	Tokens bool
	// Takes: each change is an operation that takes this long. Zero means that changes are done at once.
	Takes time.Duration
	// Lag is for how long reads may miss a change. Zero means not at all.
	Lag time.Duration
	// Quota is how many calls are served in a second; to others, the cloud answers 429. Zero means any number.
	Quota int
	// PageSize is how many items a list has. Zero means 100.
	PageSize int
	// Login is what callers have to send as bearer token; others get 401. Empty means that anybody may call.
	Login string
	// Keys: each item gets a key, which nothing shows but the answer to its create or, if that is an operation, the operation.
	Keys bool
}

// Item is what the cloud keeps.
type Item struct {
	// ID is what the cloud calls it, Name what the caller has chosen. They are the same unless ids are assigned.
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Properties are what users care about.
	Properties map[string]string `json:"properties,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	// Key is that of [Options.Keys]. Only the answer to a create has it.
	Key string `json:"key,omitempty"`
}

func (i Item) clone() Item {
	i.Properties, i.Tags = maps.Clone(i.Properties), maps.Clone(i.Tags)
	return i
}

// Operation is a change that the cloud works on.
type Operation struct {
	ID   string `json:"id"`
	Done bool   `json:"done"`
	// Item is the id of the item that it is about.
	Item string `json:"item,omitempty"`
	// Failure is why it failed; empty if it did not.
	Failure string `json:"failure,omitempty"`
	// Key is that of the item that it has created; see [Options.Keys].
	Key string `json:"key,omitempty"`
}

// Request is a call that the cloud got.
type Request struct {
	Method string    `json:"method"`
	Path   string    `json:"path"`
	At     time.Time `json:"at"`
	// Status is how it was answered; 0 if it was not.
	Status int `json:"status"`
	// Effect: it changed something.
	Effect bool `json:"effect,omitempty"`
}

// String returns the request on one line, as "PUT /items/a 200".
func (r Request) String() string { return fmt.Sprintf("%s %s %d", r.Method, r.Path, r.Status) }

// Cloud is the API. Create it with [New]. It is safe for concurrent use.
type Cloud struct {
	options Options

	mu         sync.Mutex
	items      map[string]Item
	tokens     map[string]string // ids, by token
	operations map[string]*operation
	// made counts ids and operations.
	made int
	// versions are what items were before changes that reads may miss; nil pointers are missing items.
	versions []version
	faults   []*Fault
	log      []Request
	// second and served count the calls of the present second.
	second time.Time
	served int
}

// version is an item before a change.
type version struct {
	id     string
	before *Item
	until  time.Time
}

// operation is a change that is done at a time.
type operation struct {
	Operation

	due     time.Time
	do      func() string // returns why it fails
	creates bool
}

// New returns a cloud without items.
func New(o Options) *Cloud {
	return &Cloud{options: o, items: map[string]Item{}, tokens: map[string]string{}, operations: map[string]*operation{}}
}

// Items returns all items as they are, by id, whatever reads may miss.
func (c *Cloud) Items() map[string]Item {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work()
	out := make(map[string]Item, len(c.items))
	for id, i := range c.items {
		out[id] = i.clone()
	}
	return out
}

// Put makes or changes an item, as somebody else would. Reads show it at once.
func (c *Cloud) Put(i Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i.ID == "" {
		i.ID = i.Name
	}
	c.items[i.ID] = i.clone()
}

// Remove removes an item, as somebody else would.
func (c *Cloud) Remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.items, id)
}

// Log returns the calls so far.
func (c *Cloud) Log() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

// work ends the operations that are due.
func (c *Cloud) work() {
	for _, id := range slices.SortedFunc(maps.Keys(c.operations), func(a, b string) int {
		return cmp.Or(c.operations[a].due.Compare(c.operations[b].due), cmp.Compare(a, b))
	}) {
		if o := c.operations[id]; !o.Done && !time.Now().Before(o.due) {
			o.Done, o.Failure = true, o.do()
			if o.creates && o.Failure == "" {
				o.Key = c.keyOf(o.Item)
			}
		}
	}
}

// set changes an item, nil to remove it. Reads may miss that for a while.
func (c *Cloud) set(id string, i *Item) {
	before, existed := c.items[id]
	v := version{id: id, until: time.Now().Add(c.options.Lag)}
	if existed {
		v.before = &before
	}
	if c.options.Lag > 0 {
		c.versions = append(c.versions, v)
	}
	if i == nil {
		delete(c.items, id)
		return
	}
	c.items[id] = i.clone()
}

// shown returns an item as reads show it.
func (c *Cloud) shown(id string) (Item, bool) {
	now := time.Now()
	c.versions = slices.DeleteFunc(c.versions, func(v version) bool { return !now.Before(v.until) })
	for _, v := range c.versions {
		if v.id == id { // the oldest that is still shown
			if v.before == nil {
				return Item{}, false
			}
			return v.before.clone(), true
		}
	}
	i, found := c.items[id]
	return i.clone(), found
}

// change does something at once or in an operation. do returns a status and, if it fails, why.
func (c *Cloud) change(id string, do func() (int, string)) reply {
	if c.options.Takes == 0 {
		code, failure := do()
		r := reply{code: code, effect: failure == ""}
		if r.body = c.items[id]; failure != "" {
			r.body = map[string]string{"error": failure}
		}
		return r
	}
	c.made++
	o := &operation{Operation: Operation{ID: fmt.Sprintf("op-%d", c.made), Item: id}, due: time.Now().Add(c.options.Takes)}
	o.do = func() string { _, failure := do(); return failure }
	c.operations[o.ID] = o
	return reply{code: http.StatusAccepted, body: o.Operation, effect: true}
}

// create makes an item.
func (c *Cloud) create(in Item, token string) reply {
	if id, known := c.tokens[token]; known && c.options.Tokens && token != "" {
		return c.created(id)
	}
	switch {
	case c.options.AssignIDs:
		c.made++
		in.ID = fmt.Sprintf("i-%08x", c.made*0x9e3779b1&0xffffffff) // nothing can be told from an id
	case in.Name == "":
		return refusal(http.StatusBadRequest, "an item needs a name")
	default:
		in.ID = in.Name
	}
	if _, taken := c.items[in.ID]; taken {
		return refusal(http.StatusConflict, "there is an item of that name")
	}
	if c.tokens[token] = in.ID; token == "" {
		delete(c.tokens, token)
	}
	in.Key = ""
	r := c.change(in.ID, func() (int, string) {
		if _, taken := c.items[in.ID]; taken {
			return http.StatusConflict, "there is an item of that name"
		}
		c.set(in.ID, &in)
		return http.StatusCreated, ""
	})
	switch made := r.body.(type) {
	case Item:
		made.Key = c.keyOf(made.ID)
		r.body = made
	case Operation:
		c.operations[made.ID].creates = true
	}
	return r
}

// keyOf is the key of an item; see [Options.Keys].
func (c *Cloud) keyOf(id string) string {
	if !c.options.Keys {
		return ""
	}
	return "key-of-" + id
}

// created is the answer to a create that was done before: its operation, or the item without its key.
func (c *Cloud) created(id string) reply {
	for _, o := range c.operations {
		if o.Item == id && o.creates && (!o.Done || c.options.Keys) {
			return reply{code: http.StatusAccepted, body: o.Operation}
		}
	}
	if i, found := c.items[id]; found {
		return reply{code: http.StatusOK, body: i}
	}
	return reply{code: http.StatusOK, body: Item{ID: id}}
}

// update changes an item that exists.
func (c *Cloud) update(id string, f func(*Item)) reply {
	if _, found := c.items[id]; !found {
		return refusal(http.StatusNotFound, "there is no such item")
	}
	return c.change(id, func() (int, string) {
		i, found := c.items[id]
		if !found {
			return http.StatusNotFound, "there is no such item any more"
		}
		changed := i.clone()
		f(&changed)
		c.set(id, &changed)
		return http.StatusOK, ""
	})
}

func (c *Cloud) remove(id string) reply {
	if _, found := c.items[id]; !found {
		return refusal(http.StatusNotFound, "there is no such item")
	}
	r := c.change(id, func() (int, string) {
		c.set(id, nil)
		return http.StatusOK, ""
	})
	if c.options.Takes == 0 {
		r.body = struct{}{}
	}
	return r
}

// list returns a page of items that have a tag, from after an id.
func (c *Cloud) list(tag, after string) reply {
	key, value, tagged := strings.Cut(tag, "=")
	size := c.options.PageSize
	if size <= 0 {
		size = 100
	}
	ids := map[string]bool{}
	for id := range c.items {
		ids[id] = true
	}
	for _, v := range c.versions {
		ids[v.id] = true
	}
	page := Page{Items: []Item{}}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		i, found := c.shown(id)
		if !found || id <= after || tagged && i.Tags[key] != value {
			continue
		}
		if len(page.Items) == size {
			page.Next = page.Items[size-1].ID
			break
		}
		page.Items = append(page.Items, i)
	}
	return reply{code: http.StatusOK, body: page}
}

// Page is a part of a list.
type Page struct {
	Items []Item `json:"items"`
	// Next is the value of parameter after for the next page; empty if this is the last one.
	Next string `json:"next,omitempty"`
}
