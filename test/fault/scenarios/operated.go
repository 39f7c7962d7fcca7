package scenarios

import (
	"context"
	"net/http"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/test/fault/cloudfake"
)

// Operated returns the scenario of an API that makes every change in an operation, of which nothing can be seen until it ends.
func Operated() []fault.Scenario {
	options := cloudOperator(func(env *fault.Env) operator.Controller {
		return external.New(operated{items{env: env}}, external.Options[*thing.Thing, *cloudClient]{
			Connect:     func(context.Context) (*cloudClient, error) { return newCloudClient(env), nil },
			CreateGrace: 30 * time.Second, UniqueNames: true,
		})
	})
	a := item("a")
	return []fault.Scenario{{
		Name: "cloud-operations", Operator: simulated(options),
		ExternalAPI: func() fault.ExternalAPI {
			c := cloudfake.New()
			c.WorkSlowly(20 * time.Second)
			return c
		},
		Steps: []fault.Step{
			fault.Create(a).Becomes(a, api.ConditionReady).Expecting(cloudHas("a size 1, marked")),
			resize(a).Becomes(a, api.ConditionReady).Expecting(cloudHas("a size 2, marked")),
			fault.Delete(a).Gone(a).Expecting(cloudHas()),
		},
		Patience: 5 * time.Minute, Lag: behind, Reads: 40,
	}}
}

// operated is a driver of items that change in operations.
type operated struct{ items }

var _ external.Poller[*thing.Thing, *cloudClient, cloudfake.Item] = operated{}

// Create begins to make an item.
func (d operated) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[cloudfake.Item], error) {
	d.env.Author("Create")
	defer d.env.Author("after Create")
	o, err := d.begin(ctx, r.Client, http.MethodPost, r.ID, string(r.Object.UID), cloudfake.Item{Size: r.Object.Spec.Size, Tags: r.Mark})
	return external.CreateResponse[cloudfake.Item]{Operation: o}, err
}

// Update begins to set the size of an item.
func (d operated) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, cloudfake.Item]) (external.UpdateResponse[cloudfake.Item], error) {
	o, err := d.begin(ctx, r.Client, http.MethodPut, r.ID, "", cloudfake.Item{Size: r.Object.Spec.Size})
	return external.UpdateResponse[cloudfake.Item]{Operation: o}, err
}

// Delete begins to delete an item.
func (d operated) Delete(ctx context.Context, r external.DeleteRequest[*thing.Thing, *cloudClient]) (external.DeleteResponse, error) {
	d.env.Author("Delete")
	defer d.env.Author("after Delete")
	o, err := d.begin(ctx, r.Client, http.MethodDelete, r.ID, "", cloudfake.Item{})
	return external.DeleteResponse{Operation: o}, err
}

// Poll asks about an operation.
func (d operated) Poll(ctx context.Context, r external.PollRequest[*thing.Thing, *cloudClient]) (external.PollResponse[cloudfake.Item], error) {
	d.env.Author("Poll")
	var o cloudfake.Operation
	err := r.Client.send(ctx, http.MethodGet, "/operations/"+r.Operation, nil, cloudfake.Item{}, &o)
	return external.PollResponse[cloudfake.Item]{Done: o.Done, After: 5 * time.Second}, err
}

func (operated) begin(ctx context.Context, c *cloudClient, method, name, madeFor string, in cloudfake.Item) (external.Operation, error) {
	var o cloudfake.Operation
	err := c.send(ctx, method, name, http.Header{cloudfake.MadeFor: {madeFor}}, in, &o)
	return external.Operation{ID: o.ID}, err
}
