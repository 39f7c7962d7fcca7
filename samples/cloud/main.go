// Command cloud is an operator for an API that makes everything hard: it assigns the ids, works for a while on each change,
// shows the key of an instance only in the operation that creates it, and wants a login that is in a Secret.
package main

import (
	"context"
	"embed"
	"errors"

	"github.com/spf13/pflag"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/simcloud"
	"github.com/trimtab-dev/trimtab/operator"
	v1 "github.com/trimtab-dev/trimtab/samples/cloud/api/v1"
)

type (
	instance = *v1.Instance
	client   = *simcloud.Client
	item     = simcloud.Item
)

// instances is the driver of the kind Instance.
type instances struct{}

func (instances) ExternalName(i instance) (string, error) { return i.Name, nil }

func (instances) Connection(i instance) external.Connection {
	return external.Connection{To: &i.Spec.Connection, Once: []string{"key"}}
}

func (instances) Observe(ctx context.Context, r external.ObserveRequest[instance, client]) (external.Observation[item], error) {
	have, err := r.Client.Get(ctx, r.ID)
	o := external.Available(have, external.MarkOf(have.Tags))
	o.Details = map[string][]byte{"id": []byte(have.ID)}
	return o, err
}

func (instances) Compare(r external.CompareRequest[instance, item]) external.Changes {
	return external.Field("spec.size", r.Object.Spec.Size, r.Have.Properties["size"])
}

func properties(i instance) map[string]string { return map[string]string{"size": i.Spec.Size} }

func (instances) Create(ctx context.Context, r external.CreateRequest[instance, client]) (external.CreateResponse[item], error) {
	c, err := r.Client.Create(ctx, item{Name: r.ID, Properties: properties(r.Object), Tags: r.Mark.On(nil)}, r.Token)
	return external.CreateResponse[item]{Operation: external.Operation{ID: c.Operation}}, err
}

func (instances) Update(ctx context.Context, r external.UpdateRequest[instance, client, item]) (external.UpdateResponse[item], error) {
	c, err := r.Client.Update(ctx, r.ID, properties(r.Object))
	return external.UpdateResponse[item]{Operation: external.Operation{ID: c.Operation}}, err
}

func (instances) Delete(ctx context.Context, r external.DeleteRequest[instance, client]) (external.DeleteResponse, error) {
	c, err := r.Client.Delete(ctx, r.ID)
	return external.DeleteResponse{Operation: external.Operation{ID: c.Operation}}, err
}

func (instances) Poll(ctx context.Context, r external.PollRequest[instance, client]) (external.PollResponse[item], error) {
	o, err := r.Client.Operation(ctx, r.Operation)
	p := external.PollResponse[item]{Done: o.Done, ID: o.Item}
	if o.Key != "" {
		p.Details = map[string][]byte{"key": []byte(o.Key)}
	}
	if o.Failure != "" {
		p.Err = errors.New(o.Failure)
	}
	return p, err
}

// account connects objects to the cloud with the login that each refers to.
type account struct{ url *string }

func (account) Scope(instance) (string, error)         { return "", nil }
func (account) Credentials(i instance) []api.Reference { return []api.Reference{&i.Spec.Login} }

func (a account) Connect(_ context.Context, r external.ConnectRequest[instance]) (external.ConnectResponse[client], error) {
	c := &simcloud.Client{URL: *a.url, Login: string(r.Object.Spec.Login.Value())}
	return external.ConnectResponse[client]{Client: c, Endpoint: *a.url}, nil
}

//go:embed crds
var crds embed.FS

func main() {
	url := ""
	options := external.Options[instance, client]{Connector: account{&url}, AssignedIDs: true, Tokens: true, CreateGrace: -1}
	operator.Main(operator.Options{
		Name: "cloud-operator", AddToScheme: v1.AddToScheme, CRDs: crds,
		Flags: func(f *pflag.FlagSet) { f.StringVar(&url, "cloud", "http://127.0.0.1:8089", "URL of the cloud") },
		Controllers: func() ([]operator.Controller, error) {
			return []operator.Controller{external.New(instances{}, options)}, nil
		},
	})
}
