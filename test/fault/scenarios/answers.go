package scenarios

import (
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/test/fault/cloudfake"
)

// soon is how long the cluster is quiet before the next step where an engine may still act on what the
// API returned with an earlier answer, as it may for ten seconds.
const soon = 4 * time.Second

// Answers returns the scenarios of an API that answers changes with the state, and of two accounts of
// it.
func Answers() []fault.Scenario {
	sure := answersScenario("cloud-answers", true, answeredLife(), (*cloudfake.Cloud).AnswerTersely)
	late := answersScenario("cloud-answers-late", false, answeredLife(), func(c *cloudfake.Cloud) { c.DeleteSlowly(3 * time.Second) })
	moves := answersScenario("cloud-moves", true, moves(), itemInWest)
	left := answersScenario("cloud-left", true, leftAtOnce(), itemInWest)
	return []fault.Scenario{sure, late, racing(moves, moveRaces()...), racing(left, moveRaces()...)}
}

// Kept returns the scenario of an API that says for a time that it deleted what it keeps. Each process
// finds that out for itself.
func Kept() []fault.Scenario {
	s := answersScenario("cloud-kept", true, kept(), func(*cloudfake.Cloud) {})
	return []fault.Scenario{racing(s, fault.Merge(inEast(), `{"spec":{"size":5}}`))}
}

// answersScenario is a scenario of items in accounts. If sure, reads are never behind writes.
func answersScenario(name string, sure bool, steps []fault.Step, prepare func(*cloudfake.Cloud)) fault.Scenario {
	grace, lag := time.Second, behind
	if sure {
		grace, lag = -1, 0
	}
	options := cloudOperator(func(env *fault.Env) operator.Controller {
		return external.New(answering{items{env: env}}, external.Options[*thing.Thing, *cloudClient]{
			Connector: accounts{env}, CreateGrace: grace, UniqueNames: true,
		})
	})
	return fault.Scenario{
		Name: name, Operator: simulated(options),
		ExternalAPI: func() fault.ExternalAPI {
			c := cloudfake.New()
			prepare(c)
			return c
		},
		Steps: steps, Patience: 5 * time.Minute, Lag: lag, Quiet: soon, Reads: 21,
	}
}

// accounts makes the client of each account. An item of account "east" is "east/NAME" in the cloud.
type accounts struct{ env *fault.Env }

// Scope is the account.
func (accounts) Scope(t *thing.Thing) (string, error) {
	if t.Spec.Account == "closed" {
		return "", fmt.Errorf("account %q is closed; set spec.account to another one", t.Spec.Account)
	}
	return t.Spec.Account, nil
}

// Connect makes a client.
func (a accounts) Connect(_ context.Context, r external.ConnectRequest[*thing.Thing]) (external.ConnectResponse[*cloudClient], error) {
	a.env.Author("Connect")
	c := newCloudClient(a.env)
	c.account = r.Scope + "/"
	return external.ConnectResponse[*cloudClient]{Client: c, Endpoint: r.Scope}, nil
}

// answering is a driver that passes on what the cloud returns with its answers.
type answering struct{ items }

var _ interface {
	external.Driver[*thing.Thing, *cloudClient, cloudfake.Item]
	external.Updater[*thing.Thing, *cloudClient, cloudfake.Item]
} = answering{}

// stateOf is an item as the cloud returned it.
func stateOf(have cloudfake.Item) external.Observation[cloudfake.Item] {
	o := external.Available(have, external.MarkOf(have.Tags))
	if have.Deleting {
		o.Phase = external.PhaseDeleting
	}
	return o
}

// Observe reads an item.
func (answering) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *cloudClient]) (external.Observation[cloudfake.Item], error) {
	var have cloudfake.Item
	if err := r.Client.call(ctx, http.MethodGet, r.ID, "", cloudfake.Item{}, &have); err != nil {
		return external.Observation[cloudfake.Item]{}, err
	}
	return stateOf(have), nil
}

// Compare compares the size and the tier, which only a new item can have.
func (answering) Compare(r external.CompareRequest[*thing.Thing, cloudfake.Item]) external.Changes {
	return external.Diff(
		external.Field("spec.size", r.Object.Spec.Size, r.Have.Size),
		external.Recreates(external.Optional("spec.tier", r.Object.Spec.Tier, r.Have.Tier)),
	)
}

// Create creates an item.
func (d answering) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[cloudfake.Item], error) {
	d.env.Author("Create")
	defer d.env.Author("after Create")
	made, err := d.change(ctx, r.Client, http.MethodPost, r.ID, string(r.Object.UID),
		cloudfake.Item{Size: r.Object.Spec.Size, Tier: r.Object.Spec.Tier, Tags: r.Mark})
	return external.CreateResponse[cloudfake.Item]{Observed: made}, err
}

// Update sets the size of an item.
func (d answering) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, cloudfake.Item]) (external.UpdateResponse[cloudfake.Item], error) {
	d.env.Author("Update")
	defer d.env.Author("after Update")
	changed, err := d.change(ctx, r.Client, http.MethodPut, r.ID, "", cloudfake.Item{Size: r.Object.Spec.Size})
	return external.UpdateResponse[cloudfake.Item]{Observed: changed}, err
}

// Delete deletes an item.
func (d answering) Delete(ctx context.Context, r external.DeleteRequest[*thing.Thing, *cloudClient]) (external.DeleteResponse, error) {
	d.env.Author("Delete")
	defer d.env.Author("after Delete")
	last, err := d.change(ctx, r.Client, http.MethodDelete, r.ID, "", cloudfake.Item{})
	return external.DeleteResponse{Gone: err == nil && !last.Have.Deleting}, err
}

// change makes a call that changes an item, and returns the item of the answer.
func (answering) change(ctx context.Context, c *cloudClient, method, id, madeFor string, want cloudfake.Item) (*external.Observation[cloudfake.Item], error) {
	var have cloudfake.Item
	if err := c.call(ctx, method, id, madeFor, want, &have); err != nil {
		return nil, err
	}
	return new(stateOf(have)), nil
}

// inEast is an object in account east.
func inEast() *thing.Thing {
	a := item("a")
	a.Spec.Account = "east"
	return a
}

// answeredLife creates an item, changes it in place, then in a way that takes a new item, and deletes
// it. Each step comes soon after the one before.
func answeredLife() []fault.Step {
	a := inEast()
	return []fault.Step{
		fault.Create(a).Becomes(a, api.ConditionReady).Expecting(cloudHas("east/a size 1, marked")),
		resize(a).Becomes(a, api.ConditionReady).Expecting(cloudHas("east/a size 2, marked")),
		fault.Merge(a, `{"spec":{"tier":"gold"}}`).Becomes(a, api.ConditionReady).Expecting(cloudHas("east/a size 2, gold, marked")),
		fault.Merge(a, `{"spec":{"size":3,"tier":"tin"}}`).Becomes(a, api.ConditionReady).Expecting(cloudHas("east/a size 3, tin, marked")),
		fault.Delete(a).Gone(a).Expecting(cloudHas()),
	}
}

// itemInWest lets somebody have an item of the same name in the other account.
func itemInWest(c *cloudfake.Cloud) { c.Put("west/a", cloudfake.Item{Size: 7}) }

// moves changes the account of an item: by mistake, back again, and then for good, with the annotation
// that leaves the item where it is, soon after the API returned its state. In the other account is an
// item of somebody else.
func moves() []fault.Step {
	a := inEast()
	const theirs = "west/a size 7"
	return []fault.Step{
		fault.Create(a).Becomes(a, api.ConditionReady).Expecting(cloudHas("east/a size 1, marked", theirs)),
		fault.Merge(a, `{"spec":{"account":"west"}}`).Expecting(reason(a, "EndpointChanged")).Expecting(cloudHas("east/a size 1, marked", theirs)),
		fault.Merge(a, `{"spec":{"account":"east","size":2}}`).Becomes(a, api.ConditionReady).Expecting(cloudHas("east/a size 2, marked", theirs)),
		leave(fault.Merge(a, `{"metadata":{"annotations":{"trimtab.dev/endpoint":"west"}},"spec":{"account":"west","size":3}}`)).
			Expecting(reason(a, "NotOurs")).Expecting(cloudHas("east/a size 2, marked", theirs)),
		onCloud(fault.Merge(a, annotation(api.AnnotationReconcile, "now")), func(c *cloudfake.Cloud) { c.Remove("west/a") }).
			Becomes(a, api.ConditionReady).Expecting(cloudHas("east/a size 2, marked", "west/a size 3, marked")),
		fault.Delete(a).Gone(a).Expecting(cloudHas("east/a size 2, marked")),
	}
}

// leftAtOnce deletes an object together with the change that leaves its item in the other account,
// soon after the API returned its state.
func leftAtOnce() []fault.Step {
	a := inEast()
	const theirs = "west/a size 7"
	return []fault.Step{
		fault.Create(a).Becomes(a, api.ConditionReady).Expecting(cloudHas("east/a size 1, marked", theirs)),
		leave(together("leave a in east and delete it",
			fault.Merge(a, `{"metadata":{"annotations":{"trimtab.dev/endpoint":"west"}},"spec":{"account":"closed"}}`),
			fault.Delete(a), fault.Merge(a, `{"spec":{"account":"west"}}`))).
			Gone(a).Expecting(cloudHas("east/a size 1, marked", theirs)),
	}
}

// kept is an item of which the cloud says for a time that it is deleted, and keeps it. While that lasts,
// it cannot be created again.
func kept() []fault.Step {
	a := inEast()
	return []fault.Step{
		fault.Create(a).Becomes(a, api.ConditionReady).Expecting(cloudHas("east/a size 1, marked")),
		onCloud(fault.Merge(a, `{"spec":{"tier":"gold"}}`), func(c *cloudfake.Cloud) { c.Obey(false) }).
			Expecting(says(a, "3 calls of Delete returned that thing \"a\" is gone")).Expecting(cloudHas("east/a size 1, marked")),
		onCloud(fault.Merge(a, `{"spec":{"tier":"tin"}}`), func(c *cloudfake.Cloud) { c.Obey(true) }).
			Becomes(a, api.ConditionReady).Expecting(cloudHas("east/a size 1, tin, marked")),
		fault.Delete(a).Gone(a).Expecting(cloudHas()),
	}
}

// leave is a step with which a user leaves the item in east.
func leave(step fault.Step) fault.Step {
	return onCloud(step, func(c *cloudfake.Cloud) { c.LeaveBehind("east/a") })
}

// moveRaces are not moves: where the item is made depends on when they come. Who deletes an object
// whose item is in another account waits for one who moves it back.
func moveRaces() []fault.Step {
	a := inEast()
	return []fault.Step{when(found(a), fault.Delete(a)), when(found(a), fault.Recreate(a)), fault.Merge(a, `{"spec":{"size":5}}`)}
}

// found holds of an object that is in the account of its item, or was moved for good.
func found(a *thing.Thing) condition {
	return func(ctx context.Context, w *fault.World) (bool, error) {
		now := &thing.Thing{}
		err := w.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: a.Name}, now)
		return now.Spec.Account == "east" || now.Annotations[api.AnnotationEndpoint] != "", client.IgnoreNotFound(err)
	}
}
