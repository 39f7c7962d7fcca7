package corpus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Machine is what the cloud sells.
type Machine struct {
	// ID is the cloud's, counted up.
	ID string
	// Owner is a tag for the buyer.
	Owner string
	Size  int64
	// Started is set once it was started.
	Started bool
	// Up is from when it works, once it is started.
	Up time.Time
}

// Cloud is an external API in memory. Create is not idempotent: each one makes another machine.
type Cloud struct {
	mu       sync.Mutex
	made     int
	machines map[string]Machine
	// Boot is how long a machine takes to work after its start.
	Boot time.Duration
}

var (
	_         fault.Cloner = (*Cloud)(nil)
	errNoSuch              = errors.New("no such machine")
)

// NewCloud returns an empty cloud whose machines work at once.
func NewCloud() fault.ExternalAPI { return &Cloud{} }

// Resources implements fault.ExternalAPI.
func (c *Cloud) Resources() []fault.Resource {
	var all []fault.Resource
	for _, m := range c.List("") {
		all = append(all, fault.Resource{
			Kind: "machine", ID: m.ID, Owner: m.Owner, State: fmt.Sprintf("size %d, started %t", m.Size, m.Started), Ready: m.ready(),
		})
	}
	return all
}

func (m Machine) ready() bool { return m.Started && !time.Now().Before(m.Up) }

// Clone implements fault.Cloner.
func (c *Cloud) Clone() fault.ExternalAPI {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Cloud{made: c.made, machines: maps.Clone(c.machines), Boot: c.Boot}
}

// List returns the machines of an owner, the oldest first; of all for "".
func (c *Cloud) List(owner string) []Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Machine
	for _, m := range c.machines {
		if owner == "" || m.Owner == owner {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b Machine) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Create makes a machine.
func (c *Cloud) Create(owner string, size int64, started bool) Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.machines == nil {
		c.machines = map[string]Machine{}
	}
	c.made++
	m := Machine{ID: fmt.Sprintf("m-%03d", c.made), Owner: owner, Size: size, Started: started, Up: time.Now().Add(c.Boot)}
	c.machines[m.ID] = m
	return m
}

// Change changes a machine.
func (c *Cloud) Change(id string, change func(*Machine)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.machines[id]
	if !ok {
		return errNoSuch
	}
	change(&m)
	c.machines[id] = m
	return nil
}

// Remove removes a machine, if it is there.
func (c *Cloud) Remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.machines, id)
}

// API is the cloud as operators call it.
type API struct{ Env *fault.Env }

// List lists the machines with a tag.
func (a API) List(ctx context.Context, owner string) ([]Machine, error) {
	return fault.Read(ctx, a.Env, "list machines", func(c *Cloud) ([]Machine, error) { return c.List(owner), nil })
}

// Get returns a machine by ID; nil if there is none.
func (a API) Get(ctx context.Context, id string) (*Machine, error) {
	return fault.Read(ctx, a.Env, "get machine", func(c *Cloud) (*Machine, error) {
		for _, m := range c.List("") {
			if m.ID == id {
				return &m, nil
			}
		}
		return nil, nil
	})
}

// Create makes a machine and starts it.
func (a API) Create(ctx context.Context, owner string, size int64) (Machine, error) {
	return fault.Write(ctx, a.Env, "create machine", func(c *Cloud) (Machine, error) { return c.Create(owner, size, true), nil })
}

// CreateOnce makes a machine and starts it, unless the owner, which is the key of the request, has one already.
func (a API) CreateOnce(ctx context.Context, owner string, size int64) (Machine, error) {
	return fault.Write(ctx, a.Env, "create machine once", func(c *Cloud) (Machine, error) {
		if all := c.List(owner); len(all) > 0 {
			return all[0], nil
		}
		return c.Create(owner, size, true), nil
	})
}

// Prepare makes a machine that is to be started later.
func (a API) Prepare(ctx context.Context, owner string, size int64) (Machine, error) {
	return fault.Write(ctx, a.Env, "prepare machine", func(c *Cloud) (Machine, error) { return c.Create(owner, size, false), nil })
}

// Start starts a machine.
func (a API) Start(ctx context.Context, id string) error {
	return a.change(ctx, "start machine", id, func(m *Machine) { m.Started = true })
}

// Resize changes a machine's size.
func (a API) Resize(ctx context.Context, id string, size int64) error {
	return a.change(ctx, "resize machine", id, func(m *Machine) { m.Size = size })
}

func (a API) change(ctx context.Context, what, id string, change func(*Machine)) error {
	_, err := fault.Write(ctx, a.Env, what, func(c *Cloud) (any, error) { return nil, c.Change(id, change) })
	return err
}

// Delete removes a machine; one that is gone already is fine.
func (a API) Delete(ctx context.Context, id string) error {
	_, err := fault.Write(ctx, a.Env, "delete machine", func(c *Cloud) (any, error) {
		c.Remove(id)
		return nil, nil
	})
	return err
}
