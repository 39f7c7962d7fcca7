package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/internal/applied"
)

// none is the client of a driver whose ResourceManager has its own.
type none struct{}

// seen is the external resource as Verify, Create or Update showed it. The zero value does not exist.
type seen struct {
	result  VerifyResult
	changes external.Changes
	// payload is what to store; nil for what is stored.
	payload json.RawMessage
	mark    external.Mark
}

// driver is the [external.Driver] of a ResourceManager.
type driver[T external.Object] struct {
	manager    ResourceManager[T]
	definition DefinitionManager[T]
	options    Options[T]
}

// DriverType implements [engine.Named].
func (d *driver[T]) DriverType() string { return fmt.Sprintf("%T", d.manager) }

// Observe implements [external.Driver].
func (d *driver[T]) Observe(ctx context.Context, r external.ObserveRequest[T, none]) (external.Observation[seen], error) {
	got, err := d.manager.Verify(ctx, ResourceSpec[T]{Instance: r.Object, Dependencies: r.Dependencies, ID: r.ID})
	if err != nil {
		return external.Observation[seen]{}, err
	}
	return d.observation(r.Object, got)
}

// observation is what an answer of Verify means.
func (d *driver[T]) observation(obj T, got VerifyResponse) (external.Observation[seen], error) {
	o := external.Observation[seen]{
		Have: seen{result: got.Result, changes: got.Changes, mark: got.Mark}, Mark: got.Mark, External: string(got.Result), Message: got.Message,
	}
	switch got.Result {
	case VerifyResultMissing:
		return external.Missing[seen](), nil
	case VerifyResultInProgress:
		o.Phase, o.PollAfter = external.PhaseInProgress, d.options.RequeueAfter
	case VerifyResultDeleting:
		o.Phase, o.PollAfter = external.PhaseDeleting, d.options.RequeueAfter
	case VerifyResultReady, VerifyResultUpdateRequired, VerifyResultRecreateRequired:
		o.Phase = external.PhaseAvailable
	case VerifyResultError:
		o.Phase, o.Recoverable = external.PhaseFailed, true
	default:
		return o, fmt.Errorf("invalid VerifyResult: Verify returned %q, which is not one of %q", got.Result, []VerifyResult{
			VerifyResultMissing, VerifyResultRecreateRequired, VerifyResultUpdateRequired, VerifyResultInProgress, VerifyResultReady,
			VerifyResultError, VerifyResultDeleting,
		})
	}
	payload, err := encode(obj, got.Payload)
	if err != nil && o.Phase == external.PhaseAvailable && obj.GetDeletionTimestamp().IsZero() { // it is no reason to keep what is to be deleted
		o.Phase, o.Reason, o.Message = external.PhaseDegraded, "PayloadRefused", "its payload cannot be stored: "+err.Error()
	}
	o.Have.payload = payload
	return o, nil
}

// Compare implements [external.Driver].
func (d *driver[T]) Compare(r external.CompareRequest[T, seen]) external.Changes {
	changes := r.Have.changes
	switch r.Have.result {
	case VerifyResultUpdateRequired, VerifyResultRecreateRequired:
	default:
		return external.Ignore(changes)
	}
	if len(changes) == 0 {
		changes = sinceApplied(r.Object)
	}
	effect := external.InPlace
	if r.Have.result == VerifyResultRecreateRequired {
		effect = external.Recreate
	}
	out := make(external.Changes, len(changes))
	for i, c := range changes {
		c.Effect = effect
		out[i] = c
	}
	return external.Diff(out)
}

// sinceApplied says which fields of the spec are not what the resource was last given, or that it was changed otherwise. The
// values are not shown: nobody has said which ones are secrets.
func sinceApplied(obj external.Object) (changes external.Changes) {
	for _, c := range applied.Changes(obj.GetUID(), applied.SpecOf(obj), obj.GetAnnotations()[api.AnnotationLastApplied]) {
		changes = append(changes, external.Change{Path: c.Path, Want: c.Want, Have: c.Have, Sensitive: true})
	}
	if len(changes) == 0 {
		changes = external.Changes{{Path: "spec", Want: fmt.Sprintf("generation %d", obj.GetGeneration()), Have: "different"}}
	}
	return changes
}

// Create implements [external.Driver].
func (d *driver[T]) Create(ctx context.Context, r external.CreateRequest[T, none]) (external.CreateResponse[seen], error) {
	got, err := d.manager.Create(ctx, ResourceSpec[T]{Instance: r.Object, Dependencies: r.Dependencies, ID: r.ID, Mark: r.Mark})
	mark := external.Mark(nil)
	if d.options.Marked {
		mark = r.Mark
	}
	o, err := d.answer("Create", r.Object, mark, got, err)
	return external.CreateResponse[seen]{Observed: o}, err
}

// Update implements [external.Updater].
func (d *driver[T]) Update(ctx context.Context, r external.UpdateRequest[T, none, seen]) (external.UpdateResponse[seen], error) {
	got, err := d.manager.Update(ctx, ResourceSpec[T]{Instance: r.Object, Dependencies: r.Dependencies, ID: r.ID})
	o, err := d.answer("Update", r.Object, r.Have.mark, got, err)
	return external.UpdateResponse[seen]{Observed: o}, err
}

func valid(r ApplyResult) bool {
	return r == ApplyResultSucceeded || r == ApplyResultAwaitingVerification
}

// answer is what an answer of Create or Update shows of the resource.
func (d *driver[T]) answer(method string, obj T, mark external.Mark, got ApplyResponse, err error) (*external.Observation[seen], error) {
	switch {
	case err != nil:
		return nil, err
	case got.Result == ApplyResultError:
		return nil, fmt.Errorf("%s returned %s, and no error that says why", method, got.Result)
	case !valid(got.Result):
		return nil, fmt.Errorf("invalid response: %s returned %q, which is not one of %q", method, got.Result,
			[]ApplyResult{ApplyResultAwaitingVerification, ApplyResultSucceeded, ApplyResultError})
	}
	shown := VerifyResponse{Result: VerifyResultReady, Payload: got.Payload, Mark: mark}
	if got.Result == ApplyResultAwaitingVerification {
		shown.Result = VerifyResultInProgress
	}
	o, err := d.observation(obj, shown)
	return &o, err
}

// Delete implements [external.Driver].
func (d *driver[T]) Delete(ctx context.Context, r external.DeleteRequest[T, none]) (external.DeleteResponse, error) {
	got, err := d.manager.Delete(ctx, ResourceSpec[T]{Instance: r.Object, Dependencies: r.Dependencies, ID: r.ID})
	switch {
	case err != nil:
	case got == DeleteResultAlreadyDeleted, got == DeleteResultSucceeded, got == DeleteResultAwaitingVerification:
	case got == DeleteResultError:
		err = errors.New("Delete returned Error, and no error that says why")
	default:
		err = fmt.Errorf("invalid DeleteResult: Delete returned %q, which is not one of %q", got,
			[]DeleteResult{DeleteResultAlreadyDeleted, DeleteResultSucceeded, DeleteResultAwaitingVerification, DeleteResultError})
	}
	return external.DeleteResponse{}, err
}

// ExternalName implements [external.Namer].
func (d *driver[T]) ExternalName(obj T) (string, error) {
	if namer, ok := d.manager.(external.Namer[T]); ok {
		return namer.ExternalName(obj)
	}
	return strings.ToLower(reflect.TypeFor[T]().Elem().Name()) + "-" + string(obj.GetUID()), nil
}

// Classify implements [external.Classifier].
func (d *driver[T]) Classify(err error) external.Class {
	if classifier, ok := d.manager.(external.Classifier); ok {
		return classifier.Classify(err)
	}
	return external.ClassUnknown
}

// Reflect implements [external.Reflector].
func (d *driver[T]) Reflect(r external.ReflectRequest[T, seen]) {
	holder, holds := any(r.Object).(PayloadHolder)
	if !holds || r.Have.payload == nil {
		return
	}
	if stored := holder.StatusPayload(); !sameJSON(stored.Raw, r.Have.payload) {
		*stored = apiextensionsv1.JSON{Raw: r.Have.payload}
	}
}

// mostPayload bounds a payload, in bytes.
const mostPayload = 64 << 10

// encode returns a payload as JSON; nil if there is none.
func encode(obj external.Object, payload any) (json.RawMessage, error) {
	if payload == nil {
		return nil, nil
	}
	if _, holds := obj.(PayloadHolder); !holds {
		return nil, fmt.Errorf("a payload was returned, but the status of %T has no room for it; let it implement verify.PayloadHolder", obj)
	}
	data, err := json.Marshal(payload)
	switch {
	case string(data) == "null":
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("encode the payload: %w", err)
	case len(data) > mostPayload:
		return nil, fmt.Errorf("the payload has %d bytes, more than the %d that a status can hold", len(data), mostPayload)
	}
	return data, nil
}

// sameJSON reports whether two values are the same, however they are written.
func sameJSON(a, b []byte) bool {
	x, y := decode(a), decode(b)
	return x != nil && reflect.DeepEqual(x, y)
}

func decode(data []byte) (value any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil
	}
	return value
}

// dependent is a driver whose objects need others.
type dependent[T external.Object] struct{ *driver[T] }

// DependsOn implements [external.Dependent].
func (d *dependent[T]) DependsOn(obj T) []external.Dependency {
	return d.definition.Dependencies(obj).list()
}

// finishing is a driver with a success handler.
type finishing[T external.Object] struct{ *driver[T] }

// Finish implements [external.Finisher].
func (d *finishing[T]) Finish(ctx context.Context, r external.FinishRequest[T, seen]) (external.FinishResponse, error) {
	return external.FinishResponse{}, d.options.OnSuccess(ctx, SuccessRequest[T]{Cluster: r.Cluster, Instance: r.Object})
}

// finishingDependent is both.
type finishingDependent[T external.Object] struct{ dependent[T] }

// Finish implements [external.Finisher].
func (d *finishingDependent[T]) Finish(ctx context.Context, r external.FinishRequest[T, seen]) (external.FinishResponse, error) {
	return (&finishing[T]{d.driver}).Finish(ctx, r)
}
