package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// status is the write of an object's status at the end of a pass.
type status[T client.Object] struct {
	*object[T]

	// report is what the pass reports. Conditions that are foreign to it are others' to write.
	report conditions.Report
	// desired has the status to write.
	desired T
	// least: the API server refused the whole status, and the least of it is written.
	least bool
	// common: only what all kinds have in common is the loop's, as [Wrap] says.
	common bool
}

// same reports whether server has the desired status.
func (s *status[T]) same(server T) bool {
	if s.common {
		return s.sameCommon(server, s.desired)
	}
	return s.c.fields.sameStatus(server, s.desired)
}

// foreign reports whether a condition is another's to write.
func (s *status[T]) foreign(c metav1.Condition) bool {
	return s.report.Foreign(c.Type) || s.common && s.foreignBesideReconciler(c)
}

// apply sends our part of the status by server-side apply: conditions of others are
// left out, so that they stay theirs. The answer is decoded into the type of the kind, which costs a
// fraction of what unstructured content does.
func (s *status[T]) apply(ctx context.Context) error {
	ctx, cancel := commitContext(ctx)
	defer cancel()
	if over, err := s.confirm(ctx); over {
		return err
	}
	version := s.lock()
	proven := version == ""
	if locked(s.desired) && !s.common {
		version = s.base.GetResourceVersion()
	}
	server, err := s.request(ctx, version)
	for try := 0; apierrors.IsConflict(err) && proven && try < mostRelocks; try++ {
		if version = s.relock(ctx); version == "" {
			break
		}
		s.budget++
		server, err = s.request(ctx, version)
	}
	switch {
	case apierrors.IsInvalid(err):
		return s.replace(ctx, err)
	case err != nil:
		return s.failed(ctx, err)
	}
	s.base.SetResourceVersion(server.GetResourceVersion())
	if appliedAlone(server.GetManagedFields(), string(s.c.fieldOwner())) {
		return nil
	}
	return s.removeLeftovers(ctx, server)
}

// lock returns the version to which the first write of this process is locked: its cache may be behind the last write
// of the process before it, which is not to be overwritten unseen. Empty means that no lock is needed.
func (s *status[T]) lock() string {
	if s.c.memory.proven(s.base) {
		return ""
	}
	return s.base.GetResourceVersion()
}

// mostRelocks is how often the apply of a locked status is repeated in a pass.
const mostRelocks = 3

// request sends an apply. With a version it is locked to that.
func (s *status[T]) request(ctx context.Context, version string) (server T, err error) {
	data, err := s.applied(version)
	if err != nil {
		return server, err
	}
	server = cached.New[T]()
	server.SetName(s.key.Name)
	server.SetNamespace(s.key.Namespace)
	err = s.c.client.Status().Patch(ctx, server, client.RawPatch(types.ApplyPatchType, data), client.ForceOwnership, s.c.fieldOwner())
	s.wrote("apply", "status", []string{"status"}, server.GetResourceVersion(), err)
	return server, err
}

// relock returns the version to which the status can be locked after a conflict: the present one, if what
// changed is not what the lock protects, such as the spec. Otherwise it returns an empty one.
func (s *status[T]) relock(ctx context.Context) string {
	now := cached.New[T]()
	if err := s.c.live.Get(ctx, s.key, now); err != nil || now.GetUID() != s.base.GetUID() || !samePrivate(now, s.base) {
		return ""
	}
	return now.GetResourceVersion()
}

// application is what apply sends.
type application struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string    `json:"name"`
		Namespace string    `json:"namespace,omitempty"`
		UID       types.UID `json:"uid"`
		// ResourceVersion locks the apply. Empty means that it is not locked.
		ResourceVersion string `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Status any `json:"status"`
}

// applied returns the body of an apply: the desired status without the conditions of others.
func (s *status[T]) applied(version string) ([]byte, error) {
	var a application
	a.APIVersion, a.Kind = s.c.gvk.ToAPIVersionAndKind()
	a.Metadata.Name, a.Metadata.Namespace, a.Metadata.UID = s.key.Name, s.key.Namespace, s.base.GetUID()
	a.Metadata.ResourceVersion = version
	desired, _ := reporting(s.desired)
	all := desired.Conditions
	defer func() { desired.Conditions = all }()
	desired.Conditions = slices.DeleteFunc(slices.Clone(all), s.foreign)
	encode := func(status any) ([]byte, error) {
		a.Status = status
		return json.Marshal(a)
	}
	if s.common {
		return encode(desired)
	}
	data, err := s.c.fields.marshalStatus(s.desired, encode)
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	return data, nil
}

// appliedAlone reports whether all of the status of an object was written by apply under one name. An
// apply removes what that name wrote before, and so leaves nothing there but what it says. It may err
// on the side of false.
func appliedAlone(managed []metav1.ManagedFieldsEntry, owner string) bool {
	alone := false
	for _, m := range managed {
		if m.FieldsV1 == nil || !strings.Contains(m.FieldsV1.GetRawString(), `"f:status"`) {
			continue
		}
		if m.Manager != owner || m.Operation != metav1.ManagedFieldsOperationApply {
			return false
		}
		alone = true
	}
	return alone
}

// removeLeftovers takes out of the status what is to be gone but another field manager
// wrote: the remains of a backup, of a controller under its former name, of tampering. An
// apply cannot do that. What our type does not know is not ours to remove. server is the answer to the
// apply.
func (s *status[T]) removeLeftovers(ctx context.Context, server T) error {
	s.adopt(server)
	if s.same(server) {
		return nil
	}
	s.budget++
	err := s.patch(ctx, server, server.GetResourceVersion())
	if apierrors.IsConflict(err) {
		s.contested = true
		return nil
	}
	return err
}

// adopt makes what is others' in the desired status as server has it.
func (s *status[T]) adopt(server T) {
	have, _ := reporting(server)
	want, _ := reporting(s.desired)
	want.Conditions = slices.DeleteFunc(want.Conditions, s.foreign)
	for _, c := range have.Conditions {
		if s.foreign(c) {
			want.Conditions = append(want.Conditions, c)
		}
	}
	if !s.common {
		return
	}
	s.desired, _ = server.DeepCopyObject().(T)
	now, _ := reporting(s.desired)
	*now = *want
}

// patch patches the status from what server has to the desired one, if they differ. With a version
// the patch is locked to that.
func (s *status[T]) patch(ctx context.Context, server T, version string) error {
	if s.same(server) {
		return nil
	}
	have, err := s.c.fields.statusOf(server)
	if err != nil {
		return err
	}
	want, err := s.c.fields.statusOf(s.desired)
	if err != nil {
		return err
	}
	data, err := statusPatch(have, want, version)
	if err != nil {
		return fmt.Errorf("compute the status patch: %w", err)
	}
	return s.send(ctx, server, data)
}

// send sends a merge patch of the status.
func (s *status[T]) send(ctx context.Context, server T, data []byte) error {
	ctx, cancel := commitContext(ctx)
	defer cancel()
	target, _ := server.DeepCopyObject().(T)
	err := s.c.client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, data), s.c.fieldOwner())
	s.wrote("patch", "status", []string{"status"}, target.GetResourceVersion(), err)
	return s.failed(ctx, err)
}

// replace writes a status that cannot be applied. One cause is a condition of ours of
// which somebody else wrote a part: leaving it out of an apply takes away our part and leaves
// theirs, which is no whole condition. So the status is replaced; if that is refused, too, the API
// server does not take what the status says.
func (s *status[T]) replace(ctx context.Context, refused error) error {
	s.budget++
	base := s.base
	if s.common { // the reconciler may have written the status since
		now, found, err := s.c.readLive(ctx, s.key)
		if err != nil || !found || now.GetUID() != s.base.GetUID() {
			return writeStatusError(err)
		}
		s.adopt(now)
		base = now
	}
	err := s.patch(ctx, base, base.GetResourceVersion())
	if !apierrors.IsInvalid(err) {
		return err
	}
	return s.sendLeast(ctx, base, refused)
}

// sendLeast writes state, message and Ready where the API server refuses the whole status,
// and says so. What cannot be read is worth less than the reason why.
func (s *status[T]) sendLeast(ctx context.Context, base T, refused error) error {
	s.complain(refused, statusRefused)
	s.least = true
	s.budget++
	full, _ := reporting(s.desired)
	note := "; the rest of the status is refused by the API server: " + plain.Error(refused)
	least := api.Status{
		ObservedGeneration: full.ObservedGeneration, State: plain.Clip(full.State, longestState),
		Message: plain.Line(plain.Clip(full.Message, plain.Longest/2) + note),
	}
	if ready := meta.FindStatusCondition(full.Conditions, api.ConditionReady); ready != nil {
		least.Conditions = []metav1.Condition{*ready}
	}
	body := map[string]any{"status": least}
	if s.common { // those of the reconciler stay
		for _, c := range full.Conditions {
			if s.foreign(c) {
				least.Conditions = append(least.Conditions, c)
			}
		}
		body = map[string]any{"status": least, "metadata": map[string]any{"resourceVersion": base.GetResourceVersion()}}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write the least of the status: %w", err)
	}
	return s.send(ctx, base, data)
}

// Reasons why a status cannot be written.
const (
	statusRefused   = "StatusRefused"
	statusForbidden = "StatusForbidden"
	statusNotServed = "StatusNotServed"
)

// longestState is how much of a state is kept where the status was refused.
const longestState = 64

// failed explains a write of the status that failed; nil stays nil. "Not found" may mean that the
// object is gone, which is no failure, or that its kind has no status to write, which would leave
// users without an explanation for ever.
func (s *status[T]) failed(ctx context.Context, err error) error {
	if apierrors.IsForbidden(err) { // only an event can say so
		s.complain(err, statusForbidden)
	}
	if !apierrors.IsNotFound(err) {
		return writeStatusError(err)
	}
	now := cached.New[T]()
	switch get := s.c.live.Get(ctx, s.key, now); {
	case apierrors.IsNotFound(get), get == nil && now.GetUID() != s.base.GetUID():
		return nil
	case get != nil:
		return writeStatusError(get)
	}
	kind := s.c.gvk.Kind
	err = fmt.Errorf("the status of %s %s cannot be written though the object exists; add the status subresource to the CRD of %s "+
		"(spec.versions[].subresources: {status: {}})", kind, s.key, kind)
	s.complain(err, statusNotServed)
	return err
}

func writeStatusError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write status: %w", err)
}
