package simcloud_test

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/simcloud"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

type options = external.Options[*thing.Thing, *simcloud.Client]

// items is a driver of items whose names derive from the UIDs of objects, or whose ids the cloud assigns. If tokens is set, the
// cloud knows idempotency tokens.
type items struct{ tokens bool }

func (items) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *simcloud.Client]) (external.Observation[simcloud.Item], error) {
	i, err := r.Client.Get(ctx, r.ID)
	if err != nil {
		return external.Observation[simcloud.Item]{}, err
	}
	return external.Available(i, external.MarkOf(i.Tags)), nil
}

func (items) Compare(r external.CompareRequest[*thing.Thing, simcloud.Item]) external.Changes {
	return external.Diff(
		external.Field("spec.size", strconv.Itoa(r.Object.Spec.Size), r.Have.Properties["size"]),
		external.Recreates(external.Optional("spec.tier", r.Object.Spec.Tier, r.Have.Properties["tier"])),
	)
}

func properties(t *thing.Thing) map[string]string {
	return map[string]string{"size": strconv.Itoa(t.Spec.Size), "tier": t.Spec.Tier}
}

func (d items) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *simcloud.Client]) (external.CreateResponse[simcloud.Item], error) {
	token := ""
	if d.tokens {
		token = r.Token
	}
	a, err := r.Client.Create(ctx, simcloud.Item{Name: r.ID, Properties: properties(r.Object), Tags: r.Mark.On(nil)}, token)
	return external.CreateResponse[simcloud.Item]{ID: a.Item.ID, Operation: external.Operation{ID: a.Operation}}, err
}

func (items) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *simcloud.Client, simcloud.Item]) (external.UpdateResponse[simcloud.Item], error) {
	a, err := r.Client.Update(ctx, r.ID, properties(r.Object))
	return external.UpdateResponse[simcloud.Item]{Operation: external.Operation{ID: a.Operation}}, err
}

func (items) Delete(ctx context.Context, r external.DeleteRequest[*thing.Thing, *simcloud.Client]) (external.DeleteResponse, error) {
	a, err := r.Client.Delete(ctx, r.ID)
	return external.DeleteResponse{Operation: external.Operation{ID: a.Operation}}, err
}

func (items) Poll(ctx context.Context, r external.PollRequest[*thing.Thing, *simcloud.Client]) (external.PollResponse[simcloud.Item], error) {
	o, err := r.Client.Operation(ctx, r.Operation)
	answer := external.PollResponse[simcloud.Item]{Done: o.Done, ID: o.Item, After: 100 * time.Millisecond}
	if o.Failure != "" {
		answer.Err = errors.New(o.Failure)
	}
	return answer, err
}

func (items) Unmark(ctx context.Context, r external.UnmarkRequest[*thing.Thing, *simcloud.Client]) (external.UnmarkResponse, error) {
	i, err := r.Client.Get(ctx, r.ID)
	if err == nil {
		_, err = r.Client.SetTags(ctx, r.ID, external.Unmark(i.Tags))
	}
	return external.UnmarkResponse{}, err
}

// named are items whose names users choose.
type named struct{ items }

func (named) ExternalName(t *thing.Thing) (string, error) { return "thing-" + t.Name, nil }

// found are items that are found by their marks.
type found struct{ items }

func (found) Find(ctx context.Context, r external.FindRequest[*thing.Thing, *simcloud.Client]) (external.FindResponse, error) {
	var out external.FindResponse
	all, err := r.Client.Tagged(ctx, external.MarkUID, r.Mark[external.MarkUID])
	for _, i := range all {
		out.Found = append(out.Found, external.Found{ID: i.ID, Mark: external.MarkOf(i.Tags)})
	}
	return out, err
}

// kinds are the kinds of ids that a cloud can have, with a driver for each.
func kinds() map[string]struct {
	cloud   simcloud.Options
	driver  external.Driver[*thing.Thing, *simcloud.Client, simcloud.Item]
	options options
} {
	return map[string]struct {
		cloud   simcloud.Options
		driver  external.Driver[*thing.Thing, *simcloud.Client, simcloud.Item]
		options options
	}{
		"names that users choose":      {simcloud.Options{}, named{}, options{UniqueNames: true}},
		"names that derive from UIDs":  {simcloud.Options{}, items{}, options{UniqueNames: true}},
		"opaque ids, found by tokens":  {simcloud.Options{AssignIDs: true, Tokens: true}, items{tokens: true}, options{AssignedIDs: true, Tokens: true}},
		"opaque ids, found by marks":   {simcloud.Options{AssignIDs: true, PageSize: 1}, found{}, options{AssignedIDs: true}},
		"operations, with names":       {simcloud.Options{Takes: 30 * time.Millisecond}, named{}, options{UniqueNames: true}},
		"operations, with ids, tokens": {simcloud.Options{AssignIDs: true, Tokens: true, Takes: 30 * time.Millisecond}, items{tokens: true}, options{AssignedIDs: true, Tokens: true}},
	}
}
