package scenarios

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/verify"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/test/fault/cloudfake"
)

// Verified returns the scenario of a ResourceManager of package verify. It never looks at the size of an item, as if the API
// did not show it.
func Verified() []fault.Scenario {
	options := func(env *fault.Env) operator.Options {
		return operator.Options{
			Name: "cloud", AddToScheme: thing.AddToScheme, CRDs: thing.CRDs,
			Controllers: func() ([]operator.Controller, error) {
				c, err := verify.New(verified{env, newCloudClient(env)}, verify.NoDependencies[*thing.Thing]{}, verify.Options[*thing.Thing]{
					CreateGrace: time.Second, UniqueNames: true, Marked: true,
				})
				return []operator.Controller{c}, err
			},
		}
	}
	a := item("a")
	return []fault.Scenario{{
		Name: "cloud-verify", Operator: simulated(options),
		ExternalAPI: func() fault.ExternalAPI { return cloudfake.New() },
		Steps: []fault.Step{
			fault.Create(a).Becomes(a, api.ConditionReady).Expecting(cloudHas("a size 1, marked")),
			resize(a).Becomes(a, api.ConditionReady).Expecting(cloudHas("a size 2, marked")),
			fault.Merge(a, `{"spec":{"size":1}}`).Becomes(a, api.ConditionReady).Expecting(cloudHas("a size 1, marked")),
			fault.Delete(a).Gone(a).Expecting(cloudHas()),
		},
		Patience: 5 * time.Minute, Lag: behind, Reads: 40,
	}}
}

// verified is a ResourceManager of items in the cloud.
type verified struct {
	env    *fault.Env
	client *cloudClient
}

var _ interface {
	verify.ResourceManager[*thing.Thing]
	external.Namer[*thing.Thing]
} = verified{}

// ExternalName is the object's name.
func (verified) ExternalName(t *thing.Thing) (string, error) { return t.Name, nil }

// Verify looks at an item.
func (v verified) Verify(ctx context.Context, r verify.ResourceSpec[*thing.Thing]) (verify.VerifyResponse, error) {
	var have cloudfake.Item
	err := v.client.call(ctx, http.MethodGet, r.ID, "", cloudfake.Item{}, &have)
	said, refused := errors.AsType[*cloudError](err)
	switch {
	case refused && said.code == http.StatusNotFound:
		return verify.VerifyResponse{Result: verify.VerifyResultMissing}, nil
	case err != nil:
		return verify.VerifyResponse{}, err
	case r.Changed("spec.size"):
		return verify.VerifyResponse{Result: verify.VerifyResultUpdateRequired, Mark: external.MarkOf(have.Tags)}, nil
	}
	return verify.VerifyResponse{Result: verify.VerifyResultReady, Mark: external.MarkOf(have.Tags)}, nil
}

// Create makes an item.
func (v verified) Create(ctx context.Context, r verify.ResourceSpec[*thing.Thing]) (verify.ApplyResponse, error) {
	v.env.Author("Create")
	defer v.env.Author("after Create")
	err := v.client.call(ctx, http.MethodPost, r.ID, string(r.Instance.UID), cloudfake.Item{Size: r.Instance.Spec.Size, Tags: r.Mark}, nil)
	return verify.ApplyResponse{Result: verify.ApplyResultSucceeded}, err
}

// Update sets the size of an item.
func (v verified) Update(ctx context.Context, r verify.ResourceSpec[*thing.Thing]) (verify.ApplyResponse, error) {
	v.env.Author("Update")
	defer v.env.Author("after Update")
	err := v.client.call(ctx, http.MethodPut, r.ID, "", cloudfake.Item{Size: r.Instance.Spec.Size}, nil)
	return verify.ApplyResponse{Result: verify.ApplyResultSucceeded}, err
}

// Delete deletes an item.
func (v verified) Delete(ctx context.Context, r verify.ResourceSpec[*thing.Thing]) (verify.DeleteResult, error) {
	v.env.Author("Delete")
	defer v.env.Author("after Delete")
	return verify.DeleteResultSucceeded, v.client.call(ctx, http.MethodDelete, r.ID, "", cloudfake.Item{}, nil)
}
