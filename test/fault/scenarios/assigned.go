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

// Assigned returns the scenarios of an API that assigns the ids: resources are found again by an idempotency key, or in a
// list by their marks.
func Assigned() []fault.Scenario {
	return []fault.Scenario{assignedScenario("cloud-tokens", true), assignedScenario("cloud-found", false)}
}

func assignedScenario(name string, tokens bool) fault.Scenario {
	options := cloudOperator(func(env *fault.Env) operator.Controller {
		return external.New(assigned{items{env: env}, tokens}, external.Options[*thing.Thing, *cloudClient]{
			Connect:     func(context.Context) (*cloudClient, error) { return newCloudClient(env), nil },
			CreateGrace: time.Second, AssignedIDs: true, Tokens: tokens,
		})
	})
	return fault.Scenario{
		Name: name, Operator: simulated(options),
		ExternalAPI: func() fault.ExternalAPI { return cloudfake.New() },
		Steps:       assignedLife(), Patience: 5 * time.Minute, Lag: behind,
		Reads: 21,
	}
}

// assignedLife is an item that is created, changed, lost and created again, and deleted.
func assignedLife() []fault.Step {
	a := item("a")
	lost := onCloud(fault.Merge(a, `{"metadata":{"annotations":{"`+api.AnnotationReconcile+`":"lost"}}}`),
		func(c *cloudfake.Cloud) { c.Remove("i1") })
	return []fault.Step{
		fault.Create(a).Becomes(a, api.ConditionReady).Expecting(cloudHas("i1 size 1, marked")),
		resize(a).Becomes(a, api.ConditionReady).Expecting(cloudHas("i1 size 2, marked")),
		lost.Expecting(cloudHas("i2 size 2, marked")),
		fault.Delete(a).Gone(a).Expecting(cloudHas()),
	}
}

// assigned is a driver of items to which the cloud gives ids.
type assigned struct {
	items
	tokens bool
}

var _ external.Finder[*thing.Thing, *cloudClient] = assigned{}

// Create makes an item.
func (d assigned) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[cloudfake.Item], error) {
	d.env.Author("Create")
	defer d.env.Author("after Create")
	header := http.Header{cloudfake.MadeFor: {string(r.Object.UID)}}
	if d.tokens {
		header.Set(cloudfake.Token, r.Token)
	}
	var made cloudfake.Item
	err := r.Client.send(ctx, http.MethodPost, "", header, cloudfake.Item{Size: r.Object.Spec.Size, Tags: r.Mark}, &made)
	return external.CreateResponse[cloudfake.Item]{ID: made.ID}, err
}

// Find lists the items.
func (assigned) Find(ctx context.Context, r external.FindRequest[*thing.Thing, *cloudClient]) (external.FindResponse, error) {
	var all []cloudfake.Item
	err := r.Client.send(ctx, http.MethodGet, "", nil, cloudfake.Item{}, &all)
	var found external.FindResponse
	for _, i := range all {
		found.Found = append(found.Found, external.Found{ID: i.ID, Mark: external.MarkOf(i.Tags)})
	}
	return found, err
}
