package external_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// item is a thing as the bench cloud keeps it.
type item struct {
	// ID is what the cloud calls a thing to which it gives an id.
	ID      string            `json:"id,omitempty"`
	Size    int               `json:"size"`
	Tier    string            `json:"tier,omitempty"`
	Version string            `json:"version,omitempty"`
	Host    string            `json:"host,omitempty"`
	Tags    map[string]string `json:"tags,omitempty"`
	State   string            `json:"state,omitempty"`
	Detail  string            `json:"detail,omitempty"`
	// Password is what users log in with. The cloud shows a hash of it at most.
	Password string `json:"password,omitempty"`
	// key is the idempotency key of the call that made it.
	key string
}

// answer is how the cloud answers a call instead of doing it, or after it.
type answer struct {
	code   int
	body   string
	after  string // Retry-After in seconds
	effect bool   // the call takes effect all the same
	hang   bool   // no answer until the caller gives up
	echo   bool   // the answer ends with the password of the request
	away   bool   // the call does not reach the cloud, so its log does not have it
}

// cloud is a small external API: things by name, which it makes, changes and deletes at
// once, or only when the test says so.
type cloud struct {
	*httptest.Server
	mu    sync.Mutex
	items map[string]*item
	log   []string
	// slow are the calls after which the cloud stays at work until settle.
	slow map[string]bool
	// fault answers a call; nil lets it pass.
	fault func(method, name string) *answer
	// token is what callers must log in with; empty asks for none.
	token string
	// operations are what the cloud was asked to do in operations, by id.
	operations map[string]*operation
	// shows: what is being created can be read meanwhile.
	shows bool
	// before is called before each call, without the lock.
	before func(method, name string)
	called chan struct{}
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{items: map[string]*item{}, slow: map[string]bool{}, operations: map[string]*operation{}, called: make(chan struct{}, 1)}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(func() {
		c.CloseClientConnections()
		c.Close()
	})
	return c
}

// with changes the cloud under its lock.
func (c *cloud) with(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// faulty lets f answer calls.
func (c *cloud) faulty(f func(method, name string) *answer) { c.with(func() { c.fault = f }) }

// always answers every call of a method with code and body.
func always(method string, a answer) func(string, string) *answer {
	return func(m, _ string) *answer {
		if m == method {
			return &a
		}
		return nil
	}
}

// settle ends the work that is going on, with state or with the things gone.
func (c *cloud) settle(state string) {
	c.with(func() {
		for name, i := range c.items {
			if i.State == "DELETING" {
				delete(c.items, name)
			} else {
				i.State = state
			}
		}
	})
}

func (c *cloud) get(name string) *item {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.items[name]
	if !ok {
		return nil
	}
	copied := *i
	copied.Tags = maps.Clone(i.Tags)
	return &copied
}

// put makes or changes a thing behind the operator's back.
func (c *cloud) put(name string, i item) { c.with(func() { c.items[name] = &i }) }

// change edits a thing behind the operator's back.
func (c *cloud) change(name string, f func(*item)) { c.with(func() { f(c.items[name]) }) }

// calls lists the calls so far that change something; with reads, all.
func (c *cloud) calls(reads bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, l := range c.log {
		if reads || !strings.HasPrefix(l, "GET ") {
			out = append(out, l)
		}
	}
	return out
}

// count counts calls of a method.
func (c *cloud) count(method string) int {
	n := 0
	for _, l := range c.calls(true) {
		if strings.HasPrefix(l, method+" ") {
			n++
		}
	}
	return n
}

func (c *cloud) serve(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/things/")
	var body item
	if data, err := io.ReadAll(r.Body); err == nil && len(data) > 0 {
		_ = json.Unmarshal(data, &body)
	}
	c.mu.Lock()
	before := c.before
	c.mu.Unlock()
	if before != nil {
		before(r.Method, name)
	}
	c.mu.Lock()
	fault := c.fault
	c.mu.Unlock()
	var a *answer
	if fault != nil {
		a = fault(r.Method, name)
	}
	c.mu.Lock()
	if a == nil || !a.away {
		c.log = append(c.log, r.Method+" "+name)
	}
	if a != nil && a.echo {
		echoed := *a
		echoed.body += body.Password
		a = &echoed
	}
	if c.token != "" && r.Header.Get("Authorization") != "Bearer "+c.token {
		a = &answer{code: http.StatusUnauthorized, body: "unknown token " + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")}
	}
	code, out := 0, any(nil)
	if body.key = r.Header.Get("Idempotency-Key"); a == nil || a.effect {
		switch id, is := strings.CutPrefix(name, "/operations/"); {
		case is:
			code, out = c.operation(r.Method, id)
		case r.Header.Get("Prefer") == "respond-async" && r.Method != http.MethodGet:
			code, out = c.begin(r.Method, name, body)
		case name == "":
			code, out = c.collection(r.Method, body)
		default:
			code, out = c.do(r.Method, name, body)
		}
	}
	c.mu.Unlock()
	select {
	case c.called <- struct{}{}:
	default:
	}
	c.reply(w, r, a, code, out)
}

func (c *cloud) reply(w http.ResponseWriter, r *http.Request, a *answer, code int, out any) {
	switch {
	case a == nil:
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(out)
	case a.hang:
		<-r.Context().Done()
	default:
		if a.after != "" {
			w.Header().Set("Retry-After", a.after)
		}
		w.WriteHeader(a.code)
		_, _ = io.WriteString(w, a.body)
	}
}

// collection answers calls of all things: a POST makes one under a new id, unless there is one of the same key.
func (c *cloud) collection(method string, body item) (int, any) {
	all := []item{}
	for _, name := range slices.Sorted(maps.Keys(c.items)) {
		if i := c.items[name]; method != http.MethodPost || body.key != "" && i.key == body.key {
			all = append(all, *i)
		}
	}
	switch {
	case method != http.MethodPost:
		return http.StatusOK, all
	case len(all) > 0:
		return http.StatusOK, all[0]
	}
	body.ID, body.State = fmt.Sprintf("i-%d", len(c.log)), "ONLINE"
	c.items[body.ID] = &body
	return http.StatusCreated, body
}

// do is what the calls do.
func (c *cloud) do(method, name string, body item) (int, any) {
	i, exists := c.items[name]
	switch {
	case method == http.MethodPost && exists:
		return http.StatusConflict, "exists"
	case method == http.MethodPost:
		body.State, body.Host = "ONLINE", name+".example.org"
		if c.slow[method] {
			body.State = "CREATING"
		}
		c.items[name] = &body
		return http.StatusCreated, body
	case !exists:
		return http.StatusNotFound, "no such thing"
	case method == http.MethodPut:
		i.Size, i.Tags = body.Size, body.Tags
		if body.Password != "" {
			i.Password = body.Password
		}
		if c.slow[method] {
			i.State = "UPDATING"
		}
	case method == http.MethodDelete:
		if c.slow[method] {
			i.State = "DELETING"
		} else {
			delete(c.items, name)
		}
	}
	return http.StatusOK, *i
}

// apiError is what the cloud's client makes of a refusal.
type apiError struct {
	code  int
	body  string
	after time.Duration
}

func (e *apiError) Error() string             { return fmt.Sprintf("%d %s", e.code, e.body) }
func (e *apiError) StatusCode() int           { return e.code }
func (e *apiError) RetryAfter() time.Duration { return e.after }

// cloudClient is the cloud's client.
type cloudClient struct {
	base string
	http *http.Client
	// token is what it logs in with; empty for none.
	token string
	// async asks for operations.
	async bool
}

func (a *cloudClient) call(ctx context.Context, method, name string, in, out *item) error {
	if out == nil {
		return a.send(ctx, method, name, "", in, nil)
	}
	return a.send(ctx, method, name, "", in, out)
}

// send makes a call with an idempotency key.
func (a *cloudClient) send(ctx context.Context, method, name, key string, in *item, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	path := a.base + "/things/" + name
	if strings.HasPrefix(name, "/") {
		path = a.base + name
	}
	req, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if a.async {
		req.Header.Set("Prefer", "respond-async")
	}
	req.Header.Set("Idempotency-Key", key)
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		after, _ := time.ParseDuration(resp.Header.Get("Retry-After") + "s")
		return &apiError{code: resp.StatusCode, body: strings.TrimSpace(string(data)), after: after}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

// things is the driver of the cloud's things.
type things struct{}

type observation = external.Observation[item]

func (things) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *cloudClient]) (observation, error) {
	var i item
	if err := r.Client.call(ctx, http.MethodGet, r.ID, nil, &i); err != nil {
		return observation{}, err // a 404 is Missing by the default rules
	}
	o := observation{
		External: i.State, Have: i, Mark: external.MarkOf(i.Tags), Message: i.Detail,
		Recoverable: i.State == "ERROR", PollAfter: 20 * time.Millisecond,
	}
	if i.State == "ERROR" || i.State == "BROKEN" {
		o.Reason = "OutOfStock"
	}
	return external.ByStatus(external.Phases{
		"ONLINE": external.PhaseAvailable, "IDLE": external.PhaseAvailable,
		"CREATING": external.PhaseCreating, "UPDATING": external.PhaseUpdating, "DELETING": external.PhaseDeleting,
		"LIMPING": external.PhaseDegraded, "ERROR": external.PhaseFailed, "BROKEN": external.PhaseFailed,
	}, o), nil
}

func (things) Compare(r external.CompareRequest[*thing.Thing, item]) external.Changes {
	return external.Diff(
		external.Field("spec.size", r.Object.Spec.Size, r.Have.Size),
		external.Recreates(external.Optional("spec.tier", r.Object.Spec.Tier, r.Have.Tier)),
		external.Immutable(external.Optional("spec.version", r.Object.Spec.Version, r.Have.Version)),
	)
}

func (things) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	i := item{Size: r.Object.Spec.Size, Tier: r.Object.Spec.Tier, Version: r.Object.Spec.Version, Tags: r.Mark}
	return external.CreateResponse[item]{}, r.Client.call(ctx, http.MethodPost, r.ID, &i, nil)
}

func (things) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, item]) (external.UpdateResponse[item], error) {
	r.Have.Size = r.Object.Spec.Size
	return external.UpdateResponse[item]{}, r.Client.call(ctx, http.MethodPut, r.ID, &r.Have, nil)
}

func (things) Delete(ctx context.Context, r external.DeleteRequest[*thing.Thing, *cloudClient]) (external.DeleteResponse, error) {
	return external.DeleteResponse{}, r.Client.call(ctx, http.MethodDelete, r.ID, nil, nil)
}

func (things) Unmark(ctx context.Context, r external.UnmarkRequest[*thing.Thing, *cloudClient]) (external.UnmarkResponse, error) {
	var i item
	if err := r.Client.call(ctx, http.MethodGet, r.ID, nil, &i); err != nil {
		return external.UnmarkResponse{}, err
	}
	i.Tags = external.Unmark(i.Tags)
	return external.UnmarkResponse{}, r.Client.call(ctx, http.MethodPut, r.ID, &i, nil)
}

func (things) Reflect(r external.ReflectRequest[*thing.Thing, item]) {
	r.Object.Status.Host = r.Have.Host
}

func (things) DependsOn(t *thing.Thing) []external.Dependency {
	if t.Spec.Needs == "" && t.Name != "" {
		return nil
	}
	return []external.Dependency{{Role: "other", To: &thing.Thing{}, Name: t.Spec.Needs}}
}

// named are things that users name.
type named struct{ things }

func (named) ExternalName(t *thing.Thing) (string, error) {
	if strings.ContainsAny(t.Spec.Name, " /") {
		return "", fmt.Errorf("spec.name %q: blanks and slashes are not allowed; choose another name", t.Spec.Name)
	}
	if t.Spec.Name == "" {
		return t.Name, nil
	}
	return t.Spec.Name, nil
}

// fixed are things that cannot be updated.
type fixed struct{ driver[*thing.Thing] }

type driver[T external.Object] interface {
	external.Driver[T, *cloudClient, item]
}
