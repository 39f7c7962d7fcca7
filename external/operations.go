package external

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external/internal/engine"
)

// Operation is a change that the API has accepted and works on, and that it can be asked about. The driver must be a
// [Poller]. The zero value means that there is none: the change is done, or observations show when it is.
//
// It is recorded on the object before anything else happens. Until it has ended, nothing is called but Poll and, if the
// object is deleted, what that needs.
type Operation struct {
	// ID is what the API calls the operation. It may have up to 2048 bytes.
	ID string
	// After is when to ask about it first. Zero means 1 s.
	After time.Duration
}

// Poller is a [Driver] whose API answers a change with an [Operation].
type Poller[T client.Object, C, O any] interface {
	// Poll returns the state of an operation. It changes nothing. If the API does not know the operation any more (HTTP
	// status 404 or 410), the resource is observed.
	Poll(ctx context.Context, r PollRequest[T, C]) (PollResponse[O], error)
}

// Canceler is a [Poller] that can cancel the creation or the update of a resource. That is asked for once if the operation
// takes longer than [Options.OperationDeadline], or if the object is being deleted and its resource cannot be deleted yet.
type Canceler[T client.Object, C any] interface {
	// Cancel asks the API to end the operation. Whether it does is seen by Poll.
	Cancel(ctx context.Context, r CancelRequest[T, C]) (CancelResponse, error)
}

// PollRequest asks for the state of an operation.
type PollRequest[T client.Object, C any] struct {
	// Client, Object, Incarnation and Dependencies are as in [ObserveRequest]. ID is, too, but it is empty as long as the API has not
	// assigned one.
	Client       C
	Object       T
	ID           string
	Incarnation  int64
	Dependencies map[string]client.Object
	// Operation is [Operation.ID].
	Operation string
}

// PollResponse is the state of an operation. The zero value means that it goes on.
type PollResponse[O any] struct {
	// Done means that it has ended.
	Done bool
	// Err means that it has failed, and why. It counts as an error of the call that began the operation: its class
	// decides whether and when that is repeated. Ambiguous and Throttled count as Transient. If the spec has changed since,
	// it only means that the operation has ended.
	Err error
	// ID is the id that the API assigned, as in [CreateResponse.ID], if the answer to the create did not have it. If
	// something is left of a create that failed, the id is required as well.
	ID string
	// Observed is as in [CreateResponse]. It is not used for deletions.
	Observed *Observation[O]
	// Details are as in [CreateResponse].
	Details map[string][]byte
	// After is when to ask again if the operation goes on. Zero means 1 s, growing to 30 s. The same limits apply as to
	// [Observation.PollAfter].
	After time.Duration
}

// CancelRequest asks to cancel an operation.
type CancelRequest[T client.Object, C any] struct {
	// All fields are as in [PollRequest].
	Client       C
	Object       T
	ID           string
	Incarnation  int64
	Dependencies map[string]client.Object
	Operation    string
}

// CancelResponse is the answer to a cancellation that the API accepted.
type CancelResponse struct{}

// addOperations adds the methods about operations.
func addOperations[T Object, C, O any](u *engine.Driver, d Driver[T, C, O]) {
	if poller, ok := any(d).(Poller[T, C, O]); ok {
		u.Poll = func(ctx context.Context, r engine.Request) (engine.Polled, error) {
			a, err := poller.Poll(ctx, PollRequest[T, C]{
				Client: as[C](r.Client), Object: as[T](r.Object), ID: r.ID, Incarnation: r.Incarnation, Dependencies: r.Dependencies, Operation: r.Key,
			})
			return engine.Polled{Done: a.Done, Err: a.Err, ID: a.ID, Observed: inner(a.Observed), Details: a.Details, After: a.After}, err
		}
	}
	if canceler, ok := any(d).(Canceler[T, C]); ok {
		u.Cancel = func(ctx context.Context, r engine.Request) error {
			_, err := canceler.Cancel(ctx, CancelRequest[T, C]{
				Client: as[C](r.Client), Object: as[T](r.Object), ID: r.ID, Incarnation: r.Incarnation, Dependencies: r.Dependencies, Operation: r.Key,
			})
			return err
		}
	}
}
