package cloudfake

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Operation is a change that the cloud has accepted and that takes its time, as it answers it.
type Operation struct {
	ID   string `json:"operation"`
	Done bool   `json:"done"`

	method, name string
	body         Item
	ends         time.Time
}

// WorkSlowly makes every change of an item an operation that takes a while. Until it ends, nothing of it can be seen, and
// another change of the same item is refused.
func (c *Cloud) WorkSlowly(takes time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.takes = takes
}

// work does what is due.
func (c *Cloud) work() {
	now := time.Now()
	for i := range c.operations {
		if o := &c.operations[i]; !o.Done && !now.Before(o.ends) {
			o.Done = true
			c.do(o.method, o.name, o.body)
		}
	}
}

// answerOperation answers a call that is about an operation or begins one, and reports whether it is such a call.
func (c *Cloud) answerOperation(w http.ResponseWriter, r *http.Request, body Item) bool {
	id, asks := strings.CutPrefix(r.URL.Path, "/operations/")
	if !asks && (c.takes == 0 || r.Method == http.MethodGet) {
		return false
	}
	var o Operation
	code := http.StatusOK
	if asks {
		i := slices.IndexFunc(c.operations, func(o Operation) bool { return o.ID == id })
		if i < 0 {
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		o = c.operations[i]
	} else {
		o, code = c.begin(r.Method, strings.TrimPrefix(r.URL.Path, "/items/"), body)
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o) // the caller is in this process
	return true
}

// begin accepts a change.
func (c *Cloud) begin(method, name string, body Item) (Operation, int) {
	_, exists := c.item(name)
	busy := slices.ContainsFunc(c.operations, func(o Operation) bool { return !o.Done && o.name == name })
	switch {
	case busy, exists && method == http.MethodPost:
		return Operation{}, http.StatusConflict
	case !exists && method != http.MethodPost:
		return Operation{}, http.StatusNotFound
	}
	o := Operation{ID: "op-" + strconv.Itoa(len(c.operations)+1), method: method, name: name, body: body, ends: time.Now().Add(c.takes)}
	c.operations = append(c.operations, o)
	return o, http.StatusAccepted
}
