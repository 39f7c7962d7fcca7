package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/cached"
)

// Somebody may write the status of an object all the time: a second controller that disagrees, a script.
// Each of these writes makes a new version of the object, so that no write that is locked to a version
// gets through. None of them concerns the pass, which decides nothing by the status.

// patchDespiteStatus repeats a patch of metadata that was refused because the object has another version
// now. If that differs only in status, the patch is sent without a lock on the version; instead, it tests
// what the pass has read. Otherwise, or if another process of this operator wrote the status, which decides for the
// object as well, it returns the refusal.
func (o *object[T]) patchDespiteStatus(ctx context.Context, want T, fields []string, refused error) (T, error) {
	now := cached.New[T]()
	if err := o.c.live.Get(ctx, o.key, now); err != nil {
		return now, refused
	}
	o.c.memory.saw(now, string(o.c.fieldOwner()))
	if !o.sameButStatus(now) || reportedSince(o.base, now, string(o.c.fieldOwner())) {
		return now, refused
	}
	patch, err := testedPatch(now, want)
	if err != nil {
		return now, fmt.Errorf("compute the metadata patch: %w", err)
	}
	o.budget++
	err = o.c.client.Patch(ctx, now, client.RawPatch(types.JSONPatchType, patch), o.c.fieldOwner())
	o.wrote("patch", "", fields, now.GetResourceVersion(), err)
	if apierrors.IsInvalid(err) || err == nil && locked(now) && !samePrivate(now, o.base) { // it changed after all
		return now, refused
	}
	return now, err
}

// sameButStatus reports whether now is a later version of what the pass has read and differs from it at
// most in status. A kind without generations does not show that.
func (o *object[T]) sameButStatus(now T) bool {
	return now.GetUID() == o.base.GetUID() && now.GetResourceVersion() != o.base.GetResourceVersion() &&
		now.GetGeneration() == o.base.GetGeneration() && now.GetGeneration() > 0 &&
		now.GetDeletionTimestamp().IsZero() == o.base.GetDeletionTimestamp().IsZero() &&
		len(metadataChanges(o.base, now)) == 0 &&
		(!locked(now) || samePrivate(now, o.base))
}

// reportedSince reports whether owner wrote the status of now after base was read, as far as their managed fields show.
// When others take a field over, the time at which it was last written by owner stays.
func reportedSince(base, now client.Object, owner string) bool {
	before, othersBefore := statusWriters(base, owner)
	after, others := statusWriters(now, owner)
	if after == nil || len(base.GetManagedFields()) == 0 { // or the cache leaves them out
		return false
	}
	return before == nil || !before.Time.Equal(after.Time) || equality.Semantic.DeepEqual(others, othersBefore)
}

// statusWriters returns the entry of owner in the managed fields of a status, nil if there is none, and those of others.
func statusWriters(obj client.Object, owner string) (own *metav1.ManagedFieldsEntry, others []metav1.ManagedFieldsEntry) {
	for _, m := range obj.GetManagedFields() {
		switch {
		case m.Subresource != "status":
		case m.Manager == owner:
			own = &m
		default:
			others = append(others, m)
		}
	}
	return own, others
}

// testedPatch returns the JSON patch from the metadata of base to that of want, as far as a pass may
// change it. It fails if anything but the status of the object differs from base.
func testedPatch(base, want client.Object) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	tests := []operation{
		{"test", "/metadata/uid", base.GetUID()},
		{"test", "/metadata/generation", base.GetGeneration()},
	}
	var changes []operation
	part := func(name string, of func(client.Object) any) {
		tests = append(tests, operation{"test", "/metadata/" + name, of(base)})
		changes = append(changes, operation{"add", "/metadata/" + name, of(want)})
	}
	part("labels", func(o client.Object) any { return o.GetLabels() })
	part("annotations", func(o client.Object) any { return o.GetAnnotations() })
	part("ownerReferences", func(o client.Object) any { return o.GetOwnerReferences() })
	part("finalizers", func(o client.Object) any { return o.GetFinalizers() })
	return json.Marshal(append(tests, changes...))
}

// contest says when a pass comes again that could not remove what another writes into our part of the
// status: as its outcome says, but no later than after the time for which the other has gone on. Our own
// part is written.
func (p *pass[T]) contest(r *remembered, end ending) ending {
	switch {
	case !p.contested:
		r.contested = time.Time{}
		return end
	case r.contested.IsZero():
		r.contested = p.started
	}
	wait := min(max(time.Since(r.contested), 100*time.Millisecond), 10*time.Minute)
	if end.after == 0 || wait < end.after {
		end.after, end.low, end.never = wait, false, false
	}
	return end
}

// conflict notes a pass over obj that worked on an old copy, and returns how many there were before it in
// a row. While others write to the object between these passes, they are no failures, however many.
func (r *remembered) conflict(obj client.Object) int {
	version := obj.GetResourceVersion()
	others := version != r.conflictAt && r.ownUID == obj.GetUID() && older(r.own, version)
	r.conflictAt = version
	if others && r.conflicts >= mostConflicts {
		r.conflicts = mostConflicts - 1
	}
	r.conflicts++
	return r.conflicts - 1
}
