// Package shelf is the imaginary API of Gadgets, and their ResourceManager, for tests of package verify. It contains no
// Kubernetes code, as that of an author would not.
package shelf

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/verify"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// API keeps gadgets. Its zero value is empty, and does everything at once.
type API struct {
	// Async is how many calls of Verify find a creation, an update or a deletion in progress before it ends, by the method
	// that began it.
	Async map[string]int
	// Marked: gadgets carry ownership marks.
	Marked bool

	mu     sync.Mutex
	items  map[string]*Item
	states map[string][]verify.VerifyResult
	calls  []Call
	script func(Call) *Answer
}

// Item is a gadget of the API.
type Item struct {
	Size           int
	Tier, Password string
	Mark           external.Mark
	// busy is what is being done, and left for how many more calls.
	busy string
	left int
}

// Call is a call that the API got.
type Call struct {
	Method, Name string
	// N counts the calls of this method for this gadget, from 1.
	N  int
	At time.Time
	// Payload and Dependencies are those of the request; the latter by role, with their names.
	Payload      string
	Dependencies map[string]string
	// Spec is what the gadget was given.
	Spec thing.GadgetSpec
}

// Answer replaces what the API would do.
type Answer struct {
	Apply  verify.ApplyResponse
	Verify verify.VerifyResponse
	Delete verify.DeleteResult
	Err    error
	// After: the API does it nevertheless.
	After bool
}

// On sets what is asked before each call. If it returns nil, the API does what it is asked to.
func (a *API) On(script func(Call) *Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.script = script
}

// Put changes a gadget as somebody else would; nil removes it.
func (a *API) Put(name string, i *Item) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.items == nil {
		a.items = map[string]*Item{}
	}
	if a.items[name] = i; i == nil {
		delete(a.items, name)
	}
}

// Get returns a copy of a gadget; nil if there is none.
func (a *API) Get(name string) *Item {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.items[name]
	if i == nil {
		return nil
	}
	c := *i
	return &c
}

// Calls returns the calls of a method for a gadget; any, if they are empty.
func (a *API) Calls(method, name string) []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.calls), func(c Call) bool {
		return method != "" && c.Method != method || name != "" && c.Name != name
	})
}

// Changes counts the calls for a gadget that change something.
func (a *API) Changes(name string) (n int) {
	for _, c := range a.Calls("", name) {
		if c.Method != "Verify" {
			n++
		}
	}
	return n
}

// States are the states that a gadget has had, without repetitions.
func (a *API) States(name string) []verify.VerifyResult {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.states[name])
}

// ExternalName implements [external.Namer].
func (a *API) ExternalName(g *thing.Gadget) (string, error) { return g.Name, nil }

// note takes in a call, and returns what the script answers.
func (a *API) note(method string, r verify.ResourceSpec[*thing.Gadget]) *Answer {
	a.mu.Lock()
	c := Call{Method: method, Name: r.ID, N: 1, At: time.Now(), Payload: string(r.Instance.Status.Payload.Raw), Spec: r.Instance.Spec, Dependencies: map[string]string{}}
	for role, d := range r.Dependencies {
		c.Dependencies[role] = fmt.Sprintf("%T", d) + " " + d.GetName()
	}
	for _, before := range a.calls {
		if before.Method == method && before.Name == r.ID {
			c.N++
		}
	}
	a.calls = append(a.calls, c)
	script := a.script
	a.mu.Unlock()
	if script == nil {
		return nil
	}
	return script(c)
}

// became takes in a state.
func (a *API) became(name string, s verify.VerifyResult) {
	before := a.states[name]
	if s == verify.VerifyResultMissing && len(before) == 0 || len(before) > 0 && before[len(before)-1] == s {
		return
	}
	if a.states == nil {
		a.states = map[string][]verify.VerifyResult{}
	}
	a.states[name] = append(before, s)
}

// Create implements [verify.ResourceManager].
func (a *API) Create(_ context.Context, r verify.ResourceSpec[*thing.Gadget]) (verify.ApplyResponse, error) {
	if answer := a.note("Create", r); answer != nil {
		if answer.After {
			a.apply(r, "Create")
		}
		return answer.Apply, answer.Err
	}
	return a.apply(r, "Create"), nil
}

// Update implements [verify.ResourceManager].
func (a *API) Update(_ context.Context, r verify.ResourceSpec[*thing.Gadget]) (verify.ApplyResponse, error) {
	if answer := a.note("Update", r); answer != nil {
		if answer.After {
			a.apply(r, "Update")
		}
		return answer.Apply, answer.Err
	}
	return a.apply(r, "Update"), nil
}

func (a *API) apply(r verify.ResourceSpec[*thing.Gadget], method string) verify.ApplyResponse {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.items == nil {
		a.items = map[string]*Item{}
	}
	i := &Item{Size: r.Instance.Spec.Size, Tier: r.Instance.Spec.Tier, Password: r.Instance.Spec.Password}
	if a.Marked {
		i.Mark = maps.Clone(r.Mark)
		if before := a.items[r.ID]; before != nil {
			i.Mark = before.Mark
		}
	}
	a.items[r.ID] = i
	if a.Async[method] == 0 {
		a.became(r.ID, verify.VerifyResultReady)
		return verify.ApplyResponse{Result: verify.ApplyResultSucceeded}
	}
	i.busy, i.left = method, a.Async[method]
	a.became(r.ID, verify.VerifyResultInProgress)
	return verify.ApplyResponse{Result: verify.ApplyResultAwaitingVerification}
}

// Verify implements [verify.ResourceManager].
func (a *API) Verify(_ context.Context, r verify.ResourceSpec[*thing.Gadget]) (verify.VerifyResponse, error) {
	answer := a.note("Verify", r)
	a.mu.Lock()
	defer a.mu.Unlock()
	if answer == nil {
		answer = &Answer{Verify: verify.VerifyResponse{Result: a.state(r)}}
		if i := a.items[r.ID]; i != nil {
			answer.Verify.Mark = i.Mark
		}
	}
	if answer.Err == nil {
		a.became(r.ID, answer.Verify.Result)
	}
	return answer.Verify, answer.Err
}

// state is how a gadget is, and brings what is in progress nearer to its end.
func (a *API) state(r verify.ResourceSpec[*thing.Gadget]) verify.VerifyResult {
	i, s := a.items[r.ID], r.Instance.Spec
	switch {
	case i == nil:
		return verify.VerifyResultMissing
	case i.busy == "Delete" && i.left == 0:
		delete(a.items, r.ID)
		return verify.VerifyResultMissing
	case i.left > 0:
		i.left--
		if i.busy == "Delete" {
			return verify.VerifyResultDeleting
		}
		return verify.VerifyResultInProgress
	case i.Tier != s.Tier:
		return verify.VerifyResultRecreateRequired
	case i.Size != s.Size, r.Changed("spec.password"):
		return verify.VerifyResultUpdateRequired
	}
	return verify.VerifyResultReady
}

// Delete implements [verify.ResourceManager].
func (a *API) Delete(_ context.Context, r verify.ResourceSpec[*thing.Gadget]) (verify.DeleteResult, error) {
	if answer := a.note("Delete", r); answer != nil {
		if answer.After {
			a.remove(r.ID)
		}
		return answer.Delete, answer.Err
	}
	return a.remove(r.ID), nil
}

func (a *API) remove(name string) verify.DeleteResult {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.items[name]
	switch {
	case i == nil:
		return verify.DeleteResultAlreadyDeleted
	case a.Async["Delete"] == 0:
		delete(a.items, name)
		a.became(name, verify.VerifyResultMissing)
		return verify.DeleteResultSucceeded
	}
	i.busy, i.left = "Delete", a.Async["Delete"]
	a.became(name, verify.VerifyResultDeleting)
	return verify.DeleteResultAwaitingVerification
}
