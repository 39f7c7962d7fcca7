package simcloud

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// reply is an answer of the cloud.
type reply struct {
	code   int
	body   any
	effect bool
}

func refusal(code int, why string) reply {
	return reply{code: code, body: map[string]string{"error": why}}
}

// control is the prefix of the paths by which tests control a cloud in another process.
const control = "/-/"

// ServeHTTP implements [http.Handler].
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if what, is := strings.CutPrefix(r.URL.Path, control); is {
		c.controlled(w, r, what)
		return
	}
	var in Item
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil && r.Method != http.MethodGet && r.Method != http.MethodDelete {
		answer(w, refusal(http.StatusBadRequest, "the body is no item: "+err.Error()))
		return
	}
	f, said, entry := c.take(r, in)
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
	switch {
	case f.Hang:
		<-r.Context().Done()
		return
	case f.Lose:
		panic(http.ErrAbortHandler) // the connection breaks
	}
	c.mu.Lock()
	c.log[entry].Status = said.code
	c.mu.Unlock()
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((f.RetryAfter+time.Second-1)/time.Second)))
	}
	answer(w, said)
}

// take does what a call asks for, unless a fault keeps it from that.
func (c *Cloud) take(r *http.Request, in Item) (f Fault, said reply, entry int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work()
	stranger := c.options.Login != "" && r.Header.Get("Authorization") != "Bearer "+c.options.Login
	if !stranger {
		f = c.fault(r.Method, r.URL.Path)
	}
	switch {
	case stranger:
		said = refusal(http.StatusUnauthorized, "wrong login")
	case f.Hang:
	case f.Status != 0:
		said = refusal(f.Status, "injected")
	case c.exceeds():
		said, f.RetryAfter = refusal(http.StatusTooManyRequests, "too many calls"), time.Second
	default:
		said = c.do(r, in)
	}
	c.log = append(c.log, Request{Method: r.Method, Path: r.URL.Path, At: time.Now(), Effect: said.effect})
	return f, said, len(c.log) - 1
}

func (c *Cloud) do(r *http.Request, in Item) reply {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	id := ""
	if len(parts) > 1 {
		id = parts[1]
	}
	switch route := r.Method + " " + parts[0] + strings.Repeat("/x", len(parts)-1); {
	case route == "POST items":
		return c.create(in, r.Header.Get("Idempotency-Key"))
	case route == "GET items":
		return c.list(r.URL.Query().Get("tag"), r.URL.Query().Get("after"))
	case route == "GET items/x":
		if i, found := c.shown(id); found {
			return reply{code: http.StatusOK, body: i}
		}
		return refusal(http.StatusNotFound, "there is no such item")
	case route == "PUT items/x":
		return c.update(id, func(i *Item) { i.Properties = in.Properties })
	case route == "PUT items/x/x" && parts[2] == "tags":
		return c.update(id, func(i *Item) { i.Tags = in.Tags })
	case route == "DELETE items/x":
		return c.remove(id)
	case route == "GET operations/x" && c.operations[id] != nil:
		return reply{code: http.StatusOK, body: c.operations[id].Operation}
	}
	return refusal(http.StatusNotFound, "there is no such path")
}

// controlled answers a call of a test.
func (c *Cloud) controlled(w http.ResponseWriter, r *http.Request, what string) {
	var err error
	out := any(struct{}{})
	switch r.Method + " " + what {
	case "GET items":
		out = c.Items()
	case "GET log":
		out = c.Log()
	case "POST faults":
		var f Fault
		if err = json.NewDecoder(r.Body).Decode(&f); err == nil {
			c.Inject(f)
		}
	case "DELETE faults":
		c.Heal()
	case "POST items":
		var i Item
		if err = json.NewDecoder(r.Body).Decode(&i); err == nil {
			c.Put(i)
		}
	case "DELETE items":
		c.Remove(r.URL.Query().Get("id"))
	default:
		answer(w, refusal(http.StatusNotFound, "there is no such control"))
		return
	}
	if err != nil {
		answer(w, refusal(http.StatusBadRequest, err.Error()))
		return
	}
	answer(w, reply{code: http.StatusOK, body: out})
}

func answer(w http.ResponseWriter, r reply) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.code)
	_ = json.NewEncoder(w).Encode(r.body) // whoever has gone does not need it
}
