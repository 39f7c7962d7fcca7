package externaltest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// kit checks one driver with one object after the other.
type kit[T external.Object, C, O any] struct {
	driver external.Driver[T, C, O]
	f      Fixture[T, C]
	// obj is the object whose resource exists between the checks Create and Delete.
	obj T
	// id is what its resource is called.
	id          string
	incarnation int64
	// passwords are those that it was created with.
	passwords map[string]string
	// made are all resources that may exist, for the end.
	made []made[T]
}

type made[T external.Object] struct {
	obj T
	id  string
}

// object returns the object with a name, as if the API server had it.
func (k *kit[T, C, O]) object(name string) T {
	obj := k.f.New(name)
	if obj.GetName() == "" {
		obj.SetName(name)
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace("externaltest")
	}
	if obj.GetUID() == "" {
		obj.SetUID(types.UID("uid-of-" + name))
	}
	obj.SetGeneration(1)
	return obj
}

func copyOf[T external.Object](obj T) T {
	c, _ := obj.DeepCopyObject().(T)
	return c
}

func kindOf[T external.Object]() string { return reflect.TypeFor[T]().Elem().Name() }

// nameOf returns what the resource of an object is called.
func (k *kit[T, C, O]) nameOf(obj T) (string, error) {
	namer, names := k.driver.(external.Namer[T])
	if !names {
		return strings.ToLower(kindOf[T]()) + "-" + string(obj.GetUID()), nil
	}
	return namer.ExternalName(copyOf(obj))
}

// markOf is the mark of an object's resource.
func (k *kit[T, C, O]) markOf(obj T) external.Mark {
	return record.Mark{
		UID: string(obj.GetUID()), Kind: kindOf[T]() + ".example.org", Namespace: obj.GetNamespace(), Name: obj.GetName(),
		Incarnation: max(1, k.incarnation), Cluster: "externaltest",
	}.Labels()
}

// token is the idempotency token of a create.
func token(uid types.UID, incarnation int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", uid, incarnation))
	return hex.EncodeToString(sum[:16])
}

func (k *kit[T, C, O]) observe(ctx context.Context, obj T, id string) (external.Observation[O], error) {
	o, err := k.driver.Observe(ctx, external.ObserveRequest[T, C]{Client: k.f.Client, Object: copyOf(obj), ID: id, Incarnation: max(1, k.incarnation)})
	if isAbsent(err) {
		return external.Missing[O](), nil
	}
	return o, err
}

// isAbsent reports whether an error says that there is no resource.
func isAbsent(err error) bool {
	said, is := errors.AsType[interface {
		error
		StatusCode() int
	}](err)
	return is && (said.StatusCode() == 404 || said.StatusCode() == 410)
}

// await observes until ok, or until the API has had enough time.
func (k *kit[T, C, O]) await(ctx context.Context, obj T, id, what string, ok func(external.Observation[O]) bool) (external.Observation[O], error) {
	ctx, cancel := context.WithTimeout(ctx, k.f.patience())
	defer cancel()
	for {
		o, err := k.observe(ctx, obj, id)
		if err == nil && ok(o) {
			return o, nil
		}
		timer := time.NewTimer(min(max(o.PollAfter, leastPoll), mostPoll))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if err != nil {
				return o, found("Observe: %w; waited %s for %s", err, k.f.patience(), what)
			}
			return o, fmt.Errorf("waited %s for %s; the last observation has phase %q %s", k.f.patience(), what, o.Phase, o.Message)
		}
	}
}

func usable[O any](o external.Observation[O]) bool { return o.Phase == external.PhaseAvailable }

func isMissing[O any](o external.Observation[O]) bool { return o.Phase == external.PhaseMissing }

func (k *kit[T, C, O]) compare(obj T, o external.Observation[O]) external.Changes {
	return k.driver.Compare(external.CompareRequest[T, O]{Object: copyOf(obj), Have: o.Have})
}

// acted are the changes to act on.
func acted(changes external.Changes) (out external.Changes) {
	for _, c := range changes {
		if c.Effect != external.Ignored {
			out = append(out, c)
		}
	}
	return out
}

// createRequest is the request to create the resource of an object.
func (k *kit[T, C, O]) createRequest(obj T, id string) external.CreateRequest[T, C] {
	if k.passwords == nil {
		k.passwords = map[string]string{}
		if c, connects := k.driver.(external.Connectable[T]); connects {
			for _, key := range c.Connection(copyOf(obj)).Passwords {
				k.passwords[key] = "Externaltest-1-" + key
			}
		}
	}
	return external.CreateRequest[T, C]{
		Client: k.f.Client, Object: copyOf(obj), ID: id, Token: token(obj.GetUID(), max(1, k.incarnation)), Incarnation: max(1, k.incarnation),
		Mark: k.markOf(obj), Passwords: maps.Clone(k.passwords),
	}
}

// call ends an operation that a call began, if it began one.
func (k *kit[T, C, O]) follow(ctx context.Context, obj T, id string, op external.Operation) (external.PollResponse[O], error) {
	if op.ID == "" {
		return external.PollResponse[O]{}, nil
	}
	poller, polls := k.driver.(external.Poller[T, C, O])
	if !polls {
		return external.PollResponse[O]{}, errors.New("an Operation was returned, but the driver has no method Poll")
	}
	ctx, cancel := context.WithTimeout(ctx, k.f.patience())
	defer cancel()
	for {
		r, err := poller.Poll(ctx, external.PollRequest[T, C]{Client: k.f.Client, Object: copyOf(obj), ID: id, Incarnation: max(1, k.incarnation), Operation: op.ID})
		switch {
		case isAbsent(err):
			return external.PollResponse[O]{}, nil
		case err != nil:
			return r, found("Poll: %w", err)
		case r.Err != nil:
			return r, fmt.Errorf("the operation failed: %w", r.Err)
		case r.Done:
			return r, nil
		}
		timer := time.NewTimer(min(max(r.After, leastPoll), mostPoll))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return r, fmt.Errorf("waited %s for the operation %q", k.f.patience(), op.ID)
		}
	}
}

// make creates the resource of an object and waits until it can be used. It returns what the resource is called.
func (k *kit[T, C, O]) make(ctx context.Context, obj T) (string, error) {
	name, err := k.nameOf(obj)
	if err != nil {
		return "", err
	}
	k.made = append(k.made, made[T]{obj, name})
	response, err := k.driver.Create(ctx, k.createRequest(obj, name))
	if err != nil {
		if o, unseen := k.observe(ctx, obj, name); !k.f.Options.AssignedIDs && unseen == nil && !isMissing(o) {
			return "", found("Create failed after its effect: it returned %q, and the resource exists; what follows the call that creates "+
				"the resource belongs in Mark (with Options.MarkLater) or in Update", err)
		}
		return "", found("Create: %w", err)
	}
	id, err := k.identify(ctx, obj, name, response)
	if err != nil {
		return "", err
	}
	k.made = append(k.made, made[T]{obj, id})
	if _, err := k.await(ctx, obj, id, "the resource to be Available", func(o external.Observation[O]) bool { return usable(o) }); err != nil {
		return "", fmt.Errorf("after Create under the ID %q: %w", id, err)
	}
	if marker, marks := k.driver.(external.Marker[T, C]); marks && k.f.Options.MarkLater {
		if err := k.mark(ctx, marker, obj, id); err != nil {
			return "", err
		}
	}
	return id, k.checkAnswer(response)
}

// identify returns what the created resource is called.
func (k *kit[T, C, O]) identify(ctx context.Context, obj T, name string, response external.CreateResponse[O]) (string, error) {
	known := name
	if k.f.Options.AssignedIDs {
		known = ""
	}
	polled, err := k.follow(ctx, obj, known, response.Operation)
	if err != nil {
		return "", err
	}
	id := response.ID
	if id == "" {
		id = polled.ID
	}
	switch {
	case !k.f.Options.AssignedIDs && id != "" && id != name:
		return "", found("Create ignored the ID %q and returned %q; use the ID, or set Options.AssignedIDs", name, id)
	case k.f.Options.AssignedIDs && id == "":
		return "", found("Options.AssignedIDs is set, and Create returned no ID")
	case id == "":
		return name, nil
	}
	return id, nil
}

// checkAnswer checks the state that came with the answer to a create.
func (k *kit[T, C, O]) checkAnswer(r external.CreateResponse[O]) error {
	o := r.Observed
	switch {
	case o == nil:
		return nil
	case o.Phase == external.PhaseMissing || o.Phase == "":
		return found("CreateResponse.Observed has phase %q; leave it nil if the API does not return the resource", o.Phase)
	case !k.f.Options.Unmarked && !k.f.Options.MarkLater && len(o.Mark) == 0:
		return found("CreateResponse.Observed has no Mark, so the resource is observed again; return what Observe would return")
	}
	return nil
}

func (k *kit[T, C, O]) mark(ctx context.Context, m external.Marker[T, C], obj T, id string) error {
	_, err := m.Mark(ctx, external.MarkRequest[T, C]{
		Client: k.f.Client, Object: copyOf(obj), ID: id, Incarnation: max(1, k.incarnation), Mark: k.markOf(obj),
	})
	if err != nil {
		return found("Mark: %w", err)
	}
	return nil
}

// remove deletes a resource and waits until it is gone.
func (k *kit[T, C, O]) remove(ctx context.Context, obj T, id string) error {
	r, err := k.driver.Delete(ctx, k.deleteRequest(obj, id))
	if err != nil && !isAbsent(err) {
		return found("Delete: %w", err)
	}
	if _, err := k.follow(ctx, obj, id, r.Operation); err != nil {
		return err
	}
	if r.Gone {
		o, err := k.observe(ctx, obj, id)
		switch {
		case err != nil:
			return found("Observe: %w", err)
		case !isMissing(o):
			return found("DeleteResponse.Gone is set, and an observation shows the resource nevertheless, with phase %q", o.Phase)
		}
	}
	_, err = k.await(ctx, obj, id, "the resource to be Missing", func(o external.Observation[O]) bool { return isMissing(o) })
	return err
}

func (k *kit[T, C, O]) deleteRequest(obj T, id string) external.DeleteRequest[T, C] {
	return external.DeleteRequest[T, C]{Client: k.f.Client, Object: copyOf(obj), ID: id, Incarnation: max(1, k.incarnation)}
}

// clean deletes whatever may be left.
func (k *kit[T, C, O]) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, k.f.patience())
	defer cancel()
	for _, m := range k.made {
		_, _ = k.driver.Delete(ctx, k.deleteRequest(m.obj, m.id)) // it mostly does not exist any more
	}
}
