package external_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// shelf is a tiny API: boxes by name.
type shelf map[string]box

// box is a thing as its API keeps it.
type box struct {
	size   int
	labels map[string]string
}

// boxes is the whole driver. T is the custom resource, C the API's client, O the thing.
type boxes struct{}

func (boxes) Observe(_ context.Context, r external.ObserveRequest[*thing.Thing, shelf]) (external.Observation[box], error) {
	b, found := r.Client[r.ID]
	if !found {
		return external.Missing[box](), nil
	}
	return external.Available(b, external.MarkOf(b.labels)), nil
}

func (boxes) Compare(r external.CompareRequest[*thing.Thing, box]) external.Changes {
	return external.Diff(external.Field("spec.size", r.Object.Spec.Size, r.Have.size))
}

func (boxes) Create(_ context.Context, r external.CreateRequest[*thing.Thing, shelf]) (external.CreateResponse[box], error) {
	r.Client[r.ID] = box{size: r.Object.Spec.Size, labels: r.Mark.On(nil)}
	return external.CreateResponse[box]{}, nil
}

func (boxes) Update(_ context.Context, r external.UpdateRequest[*thing.Thing, shelf, box]) (external.UpdateResponse[box], error) {
	r.Client[r.ID] = box{size: r.Object.Spec.Size, labels: r.Have.labels}
	return external.UpdateResponse[box]{}, nil
}

func (boxes) Delete(_ context.Context, r external.DeleteRequest[*thing.Thing, shelf]) (external.DeleteResponse, error) {
	delete(r.Client, r.ID)
	return external.DeleteResponse{}, nil
}

// A driver and its client make a controller, which any manager runs. What it calls can be
// called by hand.
func Example() {
	store := shelf{}
	controller := external.New(boxes{}, external.Options[*thing.Thing, shelf]{
		Connect: func(context.Context) (shelf, error) { return store, nil },
	})
	fmt.Printf("%T\n", controller)

	ctx, driver := context.Background(), boxes{}
	object := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Name: "parcel", UID: types.UID("4711")}, Spec: thing.Spec{Size: 3}}
	_, _ = driver.Create(ctx, external.CreateRequest[*thing.Thing, shelf]{
		Client: store, Object: object, ID: "thing-4711", Incarnation: 1, Mark: external.Mark{external.MarkUID: "4711"},
	})
	fmt.Println(slices.Collect(maps.Keys(store)))

	object.Spec.Size = 5
	seen, _ := driver.Observe(ctx, external.ObserveRequest[*thing.Thing, shelf]{
		Client: store, Object: object, ID: "thing-4711", Incarnation: 1,
	})
	fmt.Println(seen.Phase, driver.Compare(external.CompareRequest[*thing.Thing, box]{Object: object, Have: seen.Have}))
	// Output:
	// *loop.Controller[*github.com/trimtab-dev/trimtab/internal/thing.Thing]
	// [thing-4711]
	// Available spec.size 3 → 5
}
