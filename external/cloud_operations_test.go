package external_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// operation is a change that the cloud works on until the test ends it.
type operation struct {
	ID     string `json:"operation"`
	Done   bool   `json:"done"`
	Error  string `json:"error,omitempty"`
	Thing  string `json:"thing,omitempty"`
	Cancel bool   `json:"cancel,omitempty"`
	// Made is what it made.
	Made *item `json:"made,omitempty"`

	key string
	do  func() (int, any)
}

// begin accepts a change that is done later. A thing that is being created can be read meanwhile if the cloud shows it.
func (c *cloud) begin(method, name string, body item) (int, any) {
	if method != http.MethodPost && c.items[name] == nil {
		return http.StatusNotFound, "no such thing"
	}
	for _, o := range c.operations {
		if !o.Done && o.Thing == name && method == http.MethodPost && name != "" {
			return http.StatusConflict, "it is being created"
		}
	}
	for _, o := range c.operations {
		if o.key != "" && o.key == body.key {
			return http.StatusAccepted, *o
		}
	}
	o := &operation{ID: fmt.Sprintf("op-%d", len(c.operations)+1), Thing: name, key: body.key}
	if method == http.MethodPost && c.shows {
		creating := body
		creating.State = "CREATING"
		c.items[name] = &creating
	}
	o.do = func() (int, any) {
		if method == http.MethodPost && name != "" {
			delete(c.items, name)
		}
		if name == "" {
			return c.collection(method, body)
		}
		return c.do(method, name, body)
	}
	c.operations[o.ID] = o
	return http.StatusAccepted, *o
}

// operation answers calls about an operation.
func (c *cloud) operation(method, id string) (int, any) {
	o := c.operations[id]
	if o == nil {
		return http.StatusNotFound, "no such operation"
	}
	if method == http.MethodDelete {
		o.Cancel = true
	}
	return http.StatusOK, *o
}

// end ends an operation: it fails for a reason, or its change is done.
func (c *cloud) end(id, failure string) {
	c.with(func() {
		o := c.operations[id]
		o.Done, o.Error = true, failure
		if failure != "" {
			if i := c.items[o.Thing]; i != nil && i.State == "CREATING" {
				i.State = "BROKEN"
			}
			return
		}
		_, result := o.do()
		if made, is := result.(item); is {
			o.Thing, o.Made = cmp.Or(o.Thing, made.ID), &made
		}
	})
}

// operated are things whose API works in operations.
type operated struct{ named }

// change makes a call that begins an operation.
func (operated) change(ctx context.Context, c *cloudClient, method, name, token string, in *item) (external.Operation, error) {
	async := *c
	async.async = true
	var o operation
	err := async.send(ctx, method, name, token, in, &o)
	return external.Operation{ID: o.ID, After: 10 * time.Millisecond}, err
}

func (d operated) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	o, err := d.change(ctx, r.Client, http.MethodPost, r.ID, "", &item{Size: r.Object.Spec.Size, Tier: r.Object.Spec.Tier, Tags: r.Mark})
	return external.CreateResponse[item]{Operation: o}, err
}

func (d operated) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, item]) (external.UpdateResponse[item], error) {
	r.Have.Size = r.Object.Spec.Size
	o, err := d.change(ctx, r.Client, http.MethodPut, r.ID, "", &r.Have)
	return external.UpdateResponse[item]{Operation: o}, err
}

func (d operated) Delete(ctx context.Context, r external.DeleteRequest[*thing.Thing, *cloudClient]) (external.DeleteResponse, error) {
	o, err := d.change(ctx, r.Client, http.MethodDelete, r.ID, "", nil)
	return external.DeleteResponse{Operation: o}, err
}

func (operated) Poll(ctx context.Context, r external.PollRequest[*thing.Thing, *cloudClient]) (external.PollResponse[item], error) {
	var o operation
	err := r.Client.send(ctx, http.MethodGet, "/operations/"+r.Operation, "", nil, &o)
	p := external.PollResponse[item]{Done: o.Done, After: 10 * time.Millisecond}
	switch invalid, is := strings.CutPrefix(o.Error, "invalid: "); {
	case is:
		p.Err = external.Invalid(errors.New(invalid))
	case o.Error != "":
		p.Err = errors.New(o.Error)
	}
	return p, err
}

func (operated) Cancel(ctx context.Context, r external.CancelRequest[*thing.Thing, *cloudClient]) (external.CancelResponse, error) {
	return external.CancelResponse{}, r.Client.send(ctx, http.MethodDelete, "/operations/"+r.Operation, "", nil, nil)
}

// unpolled are operated things whose driver forgets to ask about the operations.
type unpolled struct{ driver[*thing.Thing] }

// ordered are operated things to which the API assigns ids, which are known when they are there.
type ordered struct{ operated }

func (d ordered) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	o, err := d.change(ctx, r.Client, http.MethodPost, "", r.Token, &item{Size: r.Object.Spec.Size, Tags: r.Mark})
	return external.CreateResponse[item]{Operation: o}, err
}

func (ordered) Poll(ctx context.Context, r external.PollRequest[*thing.Thing, *cloudClient]) (external.PollResponse[item], error) {
	var o operation
	err := r.Client.send(ctx, http.MethodGet, "/operations/"+r.Operation, "", nil, &o)
	p, pollErr := operated{}.Poll(ctx, r)
	p.ID = o.Thing
	return p, errors.Join(err, pollErr)
}
