// Package patch writes what a reconciler of controller-runtime changed in its object, and nothing else.
//
// [From] takes a copy of the object before the work begins, and [Snapshot.Write] sends what has changed
// since: a merge patch of the object and one of its status, each only if it is needed. A Reconciler of
// package loop does not need this package, because the loop writes. Start with the example of From.
package patch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Snapshot is an object as it was before a reconciler changed it. Make one with [From].
type Snapshot[T client.Object] struct {
	// Lock has every write fail with a conflict if anybody else has written to the object since the snapshot.
	// The default locks only a write that changes a list, such as finalizers or conditions, because a patch replaces
	// a list as a whole. Other writes overwrite the fields that changed and leave all others as they are. Without a lock the
	// status may be written to an object that was created again under the same name meanwhile.
	Lock bool
	// Owner is the field manager of the writes. Empty means that of the client.
	Owner string

	before T
}

// From returns a snapshot of obj, which the caller may change from now on.
func From[T client.Object](obj T) *Snapshot[T] { return &Snapshot[T]{before: clone(obj)} }

// Changes returns the top-level fields of obj, such as metadata and status, that differ from the snapshot, sorted. What
// the API server alone sets in metadata does not count. It is empty if there is nothing to write.
func (s *Snapshot[T]) Changes(obj T) ([]string, error) {
	changes, err := s.changes(obj)
	return slices.Sorted(maps.Keys(changes)), err
}

// Write sends what changed in obj since the snapshot, in at most two requests: one for the object, then one for its
// status. If nothing changed, it sends none. After a success, obj is what the API server answered and the snapshot is
// a copy of that, so Write can be called again. If only the status failed, obj is what the API server answered with the
// changes of the status, and another Write sends those.
//
// An object that was deleted, even if one of the same name exists, is not an error: there is nothing to write to. If a
// finalizer was added it is one, NotFound or a conflict, because what the finalizer protects must not be made.
// A write may take 5 seconds after the end of ctx, so that a deadline that was exceeded can be reported. It has no other limit.
func (s *Snapshot[T]) Write(ctx context.Context, c client.Client, obj T) error {
	changes, err := s.changes(obj)
	if err != nil {
		return err
	}
	ctx, cancel := outliving(ctx)
	defer cancel()
	lock, err := s.locked(changes)
	if err != nil {
		return err
	}
	status, withStatus := changes["status"]
	delete(changes, "status")
	if len(changes) > 0 {
		answer, err := s.send(ctx, c, changes, lock, false)
		if err != nil {
			return s.failed(ctx, c, err, obj, false)
		}
		// The answer has the status as it was: what changed in it is changed there.
		changed := answer
		if withStatus {
			if changed, err = reported(answer, status); err != nil {
				return err
			}
		}
		s.took(obj, answer, changed)
	}
	if !withStatus {
		return nil
	}
	answer, err := s.send(ctx, c, map[string]any{"status": status}, lock, true)
	if err != nil {
		return s.failed(ctx, c, err, obj, true)
	}
	s.took(obj, answer, answer)
	return nil
}

// writeTime is how long a Write may take after the end of its context.
const writeTime = 5 * time.Second

// outliving returns a context that ends writeTime after ctx, or after now if ctx has ended.
func outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stay := context.AfterFunc(ctx, func() { time.AfterFunc(writeTime, cancel) })
	return longer, func() { stay(); cancel() }
}

// served are the fields of metadata that only the API server sets.
var served = []string{
	"resourceVersion", "generation", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink",
}

// changes returns the merge patch from the snapshot to obj.
func (s *Snapshot[T]) changes(obj T) (map[string]any, error) {
	data, err := client.MergeFrom(s.before).Data(obj)
	if err != nil {
		return nil, fmt.Errorf("compute what changed in %s: %w", describe(obj), err)
	}
	changes := map[string]any{}
	if err := utiljson.Unmarshal(data, &changes); err != nil {
		return nil, fmt.Errorf("compute what changed in %s: %w", describe(obj), err)
	}
	delete(changes, "apiVersion")
	delete(changes, "kind")
	if metadata, is := changes["metadata"].(map[string]any); is {
		for _, field := range served {
			delete(metadata, field)
		}
		if len(metadata) == 0 {
			delete(changes, "metadata")
		}
	}
	return changes, nil
}

// locked reports whether a patch is to be refused if anybody else has written to the object.
func (s *Snapshot[T]) locked(changes map[string]any) (bool, error) {
	if s.Lock || len(changes) == 0 {
		return s.Lock, nil
	}
	before, err := content(s.before)
	return err == nil && replacesList(before, changes), err
}

// replacesList reports whether a merge patch sets or removes a list.
func replacesList(before, change any) bool {
	switch change := change.(type) {
	case []any:
		return true
	case nil:
		return hasList(before)
	case map[string]any:
		fields, is := before.(map[string]any)
		if !is && hasList(before) {
			return true
		}
		for name, value := range change {
			if replacesList(fields[name], value) {
				return true
			}
		}
	}
	return false
}

func hasList(value any) bool {
	switch value := value.(type) {
	case []any:
		return true
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(value)), hasList)
	}
	return false
}

// content returns the fields of an object.
func content(obj client.Object) (map[string]any, error) {
	fields := map[string]any{}
	data, err := json.Marshal(obj)
	if err == nil {
		err = utiljson.Unmarshal(data, &fields)
	}
	if err != nil {
		return nil, fmt.Errorf("read the fields of %s: %w", describe(obj), err)
	}
	return fields, nil
}

// reported returns a copy of obj with a merge patch of its status.
func reported[T client.Object](obj T, status any) (T, error) {
	changed := clone(obj)
	fields, err := content(obj)
	if err != nil {
		return changed, err
	}
	reflect.ValueOf(changed).Elem().SetZero() // so that what the patch removes does not stay
	data, err := json.Marshal(merged(fields, map[string]any{"status": status}))
	if err == nil {
		err = json.Unmarshal(data, changed)
	}
	if err != nil {
		return changed, fmt.Errorf("keep the status of %s: %w", describe(obj), err)
	}
	return changed, nil
}

// merged returns a value after a merge patch.
func merged(value, change any) any {
	changes, is := change.(map[string]any)
	if !is {
		return change
	}
	fields, is := value.(map[string]any)
	if !is {
		fields = map[string]any{}
	}
	for name, c := range changes {
		if c == nil {
			delete(fields, name)
			continue
		}
		fields[name] = merged(fields[name], c)
	}
	return fields
}

// send sends a patch, and returns the answer. The UID in it keeps it from an object that was created again; for a status
// the API server ignores that.
func (s *Snapshot[T]) send(ctx context.Context, c client.Client, changes map[string]any, lock, status bool) (T, error) {
	metadata, _ := changes["metadata"].(map[string]any)
	guarded := map[string]any{}
	maps.Copy(guarded, metadata)
	if !status {
		guarded["uid"] = s.before.GetUID()
	}
	if lock {
		guarded["resourceVersion"] = s.before.GetResourceVersion()
	}
	changes = maps.Clone(changes)
	if len(guarded) > 0 {
		changes["metadata"] = guarded
	}
	answer := clone(s.before)
	data, err := json.Marshal(changes)
	if err != nil {
		return answer, err
	}
	body := client.RawPatch(types.MergePatchType, data)
	switch {
	case status && s.Owner != "":
		err = c.Status().Patch(ctx, answer, body, client.FieldOwner(s.Owner))
	case status:
		err = c.Status().Patch(ctx, answer, body)
	case s.Owner != "":
		err = c.Patch(ctx, answer, body, client.FieldOwner(s.Owner))
	default:
		err = c.Patch(ctx, answer, body)
	}
	return answer, err
}

// took makes an answer the snapshot, and changed obj.
func (s *Snapshot[T]) took(obj, answer, changed T) {
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(clone(changed)).Elem())
	s.before = answer
}

// failed explains an error of a write. It is nil if the object is gone and nobody relies on the write.
func (s *Snapshot[T]) failed(ctx context.Context, c client.Client, err error, obj T, status bool) error {
	finalizer := slices.ContainsFunc(obj.GetFinalizers(), func(f string) bool { return !slices.Contains(s.before.GetFinalizers(), f) })
	what := "write " + describe(s.before)
	if status {
		what = "write the status of " + describe(s.before)
	}
	missing := apierrors.IsNotFound(err)
	if missing && !status && !finalizer {
		return nil
	}
	if !finalizer && (missing || apierrors.IsConflict(err) || apierrors.IsInvalid(err)) {
		now := clone(s.before)
		switch get := c.Get(ctx, client.ObjectKeyFromObject(s.before), now); {
		case apierrors.IsNotFound(get), get == nil && now.GetUID() != s.before.GetUID():
			return nil
		case missing && get == nil && now.GetDeletionTimestamp().IsZero():
			return fmt.Errorf("%s, which exists: %w; add the status subresource to its CRD (spec.versions[].subresources: {status: {}})", what, err)
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}

func describe(obj client.Object) string {
	return reflect.TypeOf(obj).Elem().Name() + " " + client.ObjectKeyFromObject(obj).String()
}

func clone[T client.Object](obj T) T {
	copied, _ := obj.DeepCopyObject().(T)
	return copied
}
