package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
}

// same reports whether server has the desired status.
func (s *status[T]) same(server T) bool { return s.c.fields.sameStatus(server, s.desired) }

// apply sends our part of the status by server-side apply: conditions of others are
// left out, so that they stay theirs.
func (s *status[T]) apply(ctx context.Context) error {
	fields, err := s.c.fields.statusOf(s.desired)
	if err != nil {
		return err
	}
	if list, ok := fields["conditions"].([]any); ok {
		fields["conditions"] = slices.DeleteFunc(list, func(c any) bool {
			m, _ := c.(map[string]any)
			t, _ := m["type"].(string)
			return s.report.Foreign(t)
		})
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(s.c.gvk)
	u.SetName(s.key.Name)
	u.SetNamespace(s.key.Namespace)
	u.SetUID(s.base.GetUID())
	ctx, cancel := commitContext(ctx)
	defer cancel()
	err = s.c.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, s.c.fieldOwner())
	s.wrote("apply", "status", []string{"status"}, u.GetResourceVersion(), err)
	switch {
	case apierrors.IsInvalid(err):
		return s.replace(ctx, err)
	case err != nil:
		return s.failed(ctx, err)
	}
	s.base.SetResourceVersion(u.GetResourceVersion())
	if appliedAlone(u, string(s.c.fieldOwner())) {
		return nil
	}
	return s.removeLeftovers(ctx, u)
}

// appliedAlone reports whether all of the status of an object was written by apply under one name. An
// apply removes what that name wrote before, and so leaves nothing there but what it says.
func appliedAlone(u *unstructured.Unstructured, owner string) bool {
	metadata, _ := u.Object["metadata"].(map[string]any)
	managed, _ := metadata["managedFields"].([]any)
	alone := false
	for _, entry := range managed {
		m, _ := entry.(map[string]any)
		fields, _ := m["fieldsV1"].(map[string]any)
		if _, writes := fields["f:status"]; !writes {
			continue
		}
		if m["manager"] != owner || m["operation"] != string(metav1.ManagedFieldsOperationApply) {
			return false
		}
		alone = true
	}
	return alone
}

// removeLeftovers takes out of the status what is to be gone but another field manager
// wrote: the remains of a backup, of a controller under its former name, of tampering. An
// apply cannot do that. What our type does not know is not ours to remove.
func (s *status[T]) removeLeftovers(ctx context.Context, applied *unstructured.Unstructured) error {
	server := cached.New[T]()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(applied.Object, server); err != nil {
		return fmt.Errorf("read the status back: %w", err)
	}
	have, _ := reporting(server)
	want, _ := reporting(s.desired)
	foreign := func(c metav1.Condition) bool { return s.report.Foreign(c.Type) }
	want.Conditions = slices.DeleteFunc(want.Conditions, foreign)
	for _, c := range have.Conditions { // others' are as they are now
		if foreign(c) {
			want.Conditions = append(want.Conditions, c)
		}
	}
	if s.same(server) {
		return nil
	}
	s.budget++
	return s.patch(ctx, server, server.GetResourceVersion())
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
	err := s.patch(ctx, s.base, s.base.GetResourceVersion())
	if !apierrors.IsInvalid(err) {
		return err
	}
	return s.sendLeast(ctx, refused)
}

// sendLeast writes state, message and Ready where the API server refuses the whole status,
// and says so. What cannot be read is worth less than the reason why.
func (s *status[T]) sendLeast(ctx context.Context, refused error) error {
	s.complain(refused, "StatusRefused")
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
	data, err := json.Marshal(map[string]any{"status": least})
	if err != nil {
		return fmt.Errorf("write the least of the status: %w", err)
	}
	return s.send(ctx, s.base, data)
}

// longestState is how much of a state is kept where the status was refused.
const longestState = 64

// failed explains a write of the status that failed; nil stays nil. "Not found" may mean that the
// object is gone, which is no failure, or that its kind has no status to write, which would leave
// users without an explanation for ever.
func (s *status[T]) failed(ctx context.Context, err error) error {
	if apierrors.IsForbidden(err) { // only an event can say so
		s.complain(err, "StatusForbidden")
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
	s.complain(err, "StatusNotServed")
	return err
}

func writeStatusError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write status: %w", err)
}
