// Package cloudfake is an external API in memory, reached by HTTP: items by name, which get their
// tags when they are created or in a separate call. It answers changes with the state of the item. It
// can throttle for a while, or be unreachable, and it bans a caller that makes too many calls
// meanwhile. Begin with [New] and [Cloud.Handler].
package cloudfake

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Item is what the cloud has, as it answers it.
type Item struct {
	// ID is what the cloud calls it.
	ID   string `json:"id,omitempty"`
	Size int    `json:"size"`
	// Tier is fixed when the item is created.
	Tier string            `json:"tier,omitempty"`
	Tags map[string]string `json:"tags,omitempty"`
	// Deleting is set until a deletion that takes its time is done.
	Deleting bool `json:"deleting,omitempty"`
	// gone is when that is; madeFor and left are for the fake's own books.
	gone    time.Time
	madeFor string
	left    bool
	token   string
}

const (
	// MadeFor is the header of a POST that names the object that an item is for. Only the fake's
	// own books know it; no answer contains it.
	MadeFor = "Made-For"
	// Token is the header of a POST of /items/ that names its idempotency key.
	Token = "Idempotency-Key" //nolint:gosec // no credentials
	// Gone is the status that stands for a refused connection.
	Gone = 444
)

// Cloud holds items. Make one with [New]; it is safe for concurrent use.
type Cloud struct {
	mu    sync.Mutex
	items map[string]Item
	// made counts the items to which the cloud gave ids, by the object that they are for: the ids do not depend on what
	// was made for an earlier object of the same name.
	made map[string]int
	// until is when the outage ends; answer is the status meanwhile, after how long it asks to wait.
	until  time.Time
	answer int
	after  time.Duration
	// patience is how many more calls are tolerated meanwhile.
	patience int
	banned   bool
	// slow is how long deletions take; terse lets answers to updates leave out the tags; stubborn
	// lets deletions be accepted and do nothing.
	slow            time.Duration
	terse, stubborn bool
	// operations are those of all time, in the order in which they began; takes is how long they take.
	operations []Operation
	takes      time.Duration
	// belongs is the object that all marked items are for; empty if their marks name it.
	belongs string
}

var _ fault.Cloner = (*Cloud)(nil)

// New makes a cloud without items.
func New() *Cloud { return &Cloud{items: map[string]Item{}, made: map[string]int{}} }

// Clone returns a copy that shares nothing with c.
func (c *Cloud) Clone() fault.ExternalAPI {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The tags of an item are replaced, never changed.
	return &Cloud{
		items: maps.Clone(c.items), made: maps.Clone(c.made), until: c.until, answer: c.answer, after: c.after, patience: c.patience, banned: c.banned,
		operations: slices.Clone(c.operations), takes: c.takes, slow: c.slow, terse: c.terse, stubborn: c.stubborn, belongs: c.belongs,
	}
}

// Resources returns the items, and a ban if there were too many calls during an outage. An item
// belongs to the object that its mark names, or else to the one that it was made for.
func (c *Cloud) Resources() []fault.Resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work()
	var all []fault.Resource
	for name := range c.items {
		if i, exists := c.item(name); exists {
			owner := i.owner()
			if owner != "" {
				owner = cmp.Or(c.belongs, owner)
			}
			all = append(all, fault.Resource{Kind: "item", ID: name, Owner: owner, State: i.state(), Ready: !i.Deleting})
		}
	}
	if c.banned {
		all = append(all, fault.Resource{Kind: "ban", ID: "too many calls during an outage"})
	}
	slices.SortFunc(all, func(a, b fault.Resource) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
	return all
}

// owner is the object that the item belongs to, by its mark or by the books.
func (i Item) owner() string {
	if i.left {
		return ""
	}
	return cmp.Or(external.MarkOf(i.Tags)[external.MarkUID], i.madeFor)
}

// state is what users care about.
func (i Item) state() string {
	state := fmt.Sprintf("size %d", i.Size)
	if i.Tier != "" {
		state += ", " + i.Tier
	}
	if external.MarkOf(i.Tags)[external.MarkUID] != "" {
		state += ", marked"
	}
	if i.Deleting {
		state += ", deleting"
	}
	return state
}

// item returns an item that exists now.
func (c *Cloud) item(name string) (Item, bool) {
	i, exists := c.items[name]
	return i, exists && (!i.Deleting || time.Now().Before(i.gone))
}

// BelongTo says which object the items that bear a mark are for, where marks name something that is no
// object: an external resource that a component has.
func (c *Cloud) BelongTo(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.belongs = owner
}

// DeleteSlowly lets deletions take a while, during which the item is still there.
func (c *Cloud) DeleteSlowly(takes time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = takes
}

// AnswerTersely leaves the tags out of the answers to updates.
func (c *Cloud) AnswerTersely() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.terse = true
}

// Obey sets whether deletions delete. Otherwise they are answered as if they had.
func (c *Cloud) Obey(deletes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stubborn = !deletes
}

// LeaveBehind notes that a user decided to leave an item where it is: it stays when its object goes.
func (c *Cloud) LeaveBehind(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i, exists := c.item(name); exists {
		i.left = true
		c.items[name] = i
	}
}

// Put creates an item that belongs to nobody.
func (c *Cloud) Put(name string, i Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items[name] = i
}

// Remove removes an item, as its owner would.
func (c *Cloud) Remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.items, name)
}

// Throttle makes the cloud answer every call with 429 for a while, and with Retry-After. More
// calls than patience lead to a ban.
func (c *Cloud) Throttle(lasts, after time.Duration, patience int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until, c.answer, c.after, c.patience = time.Now().Add(lasts), http.StatusTooManyRequests, after, patience
}

// Leave makes the cloud refuse connections for a while. More calls than patience lead to a ban.
func (c *Cloud) Leave(lasts time.Duration, patience int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until, c.answer, c.after, c.patience = time.Now().Add(lasts), Gone, 0, patience
}

// Handler serves GET, POST, PUT and DELETE of /items/NAME, and PUT of /items/NAME/tags. A POST of /items/ gets a new id,
// unless there is an item of the same idempotency key; a GET of /items/ lists all items. After [Cloud.WorkSlowly], changes
// of items are answered with an [Operation], which GET of /operations/ID returns.
func (c *Cloud) Handler() http.Handler { return http.HandlerFunc(c.serve) }

func (c *Cloud) serve(w http.ResponseWriter, r *http.Request) {
	var body Item
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil && r.Method != http.MethodGet && r.Method != http.MethodDelete {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work()
	if time.Now().Before(c.until) {
		c.patience--
		c.banned = c.banned || c.patience < 0
		if c.after > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(c.after.Seconds())))
		}
		w.WriteHeader(c.answer)
		return
	}
	body.madeFor, body.token = r.Header.Get(MadeFor), r.Header.Get(Token)
	if c.answerOperation(w, r, body) {
		return
	}
	if r.URL.Path == "/items/" {
		c.collection(w, r.Method, body)
		return
	}
	code, item := c.do(r.Method, strings.TrimPrefix(r.URL.Path, "/items/"), body)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(item) // the caller is in this process
}

// collection answers a call of /items/.
func (c *Cloud) collection(w http.ResponseWriter, method string, body Item) {
	all := []Item{}
	for _, id := range slices.Sorted(maps.Keys(c.items)) {
		if i, exists := c.item(id); exists {
			all = append(all, i)
		}
	}
	if method != http.MethodPost {
		_ = json.NewEncoder(w).Encode(all)
		return
	}
	first := slices.IndexFunc(all, func(i Item) bool { return body.token != "" && i.token == body.token })
	if first < 0 {
		c.made[body.madeFor]++
		for body.ID = "i" + strconv.Itoa(c.made[body.madeFor]); c.items[body.ID].ID != ""; body.ID += "x" {
		}
		c.items[body.ID] = body
		all, first = append(all, body), len(all)
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(all[first])
}

func (c *Cloud) do(method, path string, body Item) (int, Item) {
	name, tags := strings.CutSuffix(path, "/tags")
	item, exists := c.item(name)
	switch {
	case method == http.MethodPost && exists:
		return http.StatusConflict, Item{}
	case method == http.MethodPost:
		c.items[name] = body
		return http.StatusCreated, body
	case !exists:
		return http.StatusNotFound, Item{}
	case method == http.MethodDelete:
		return c.remove(name, item)
	case method == http.MethodPut && item.Deleting:
		return http.StatusConflict, Item{}
	case method == http.MethodPut && tags:
		item.Tags = body.Tags
		c.items[name] = item
	case method == http.MethodPut:
		item.Size = body.Size
		c.items[name] = item
		if c.terse {
			item.Tags = nil
		}
	}
	return http.StatusOK, item
}

// remove deletes an item, or begins to.
func (c *Cloud) remove(name string, item Item) (int, Item) {
	switch {
	case c.stubborn:
		return http.StatusOK, item
	case c.slow == 0:
		delete(c.items, name)
		return http.StatusOK, item
	}
	if !item.Deleting {
		item.Deleting, item.gone = true, time.Now().Add(c.slow)
		c.items[name] = item
	}
	return http.StatusAccepted, item
}
