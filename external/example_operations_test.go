package external_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/trimtab-dev/trimtab/external"
)

// region: operations

// orderedBuckets are buckets whose API takes its time and answers with the number of an order.
type orderedBuckets struct {
	buckets
	orders map[string]string // what became of each
}

func (o orderedBuckets) Create(context.Context, external.CreateRequest[*Bucket, store]) (external.CreateResponse[bucket], error) {
	o.orders["order-1"] = "working" // with the ID, the Mark and the spec of the request
	return external.CreateResponse[bucket]{Operation: external.Operation{ID: "order-1"}}, nil
}

func (o orderedBuckets) Poll(_ context.Context, r external.PollRequest[*Bucket, store]) (external.PollResponse[bucket], error) {
	switch state := o.orders[r.Operation]; state {
	case "working":
		return external.PollResponse[bucket]{}, nil
	case "done":
		return external.PollResponse[bucket]{Done: true}, nil
	default:
		return external.PollResponse[bucket]{Err: external.Invalid(errors.New(state))}, nil
	}
}

// endregion: operations

// An order fails because of the spec, which the status says.
func ExamplePoller() {
	d := orderedBuckets{orders: map[string]string{}}
	answer, err := d.Create(context.Background(), external.CreateRequest[*Bucket, store]{})
	fmt.Println(answer.Operation.ID, err)
	d.orders["order-1"] = "the quota exceeds that of the account"
	state, err := d.Poll(context.Background(), external.PollRequest[*Bucket, store]{Operation: answer.Operation.ID})
	fmt.Println(state.Err, err)
	// Output:
	// order-1 <nil>
	// the quota exceeds that of the account <nil>
}
