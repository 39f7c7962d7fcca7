package loop

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fields of the status about which it matters who wrote them, as managedFields has them.
const (
	fieldApplied  = `"f:appliedGeneration"`
	fieldLastPass = `"f:lastPass"`
)

// StripManagedFields returns a transform for a manager's cache that drops managedFields, which are half of an object, but
// for who wrote the parts of [api.Status] by which the loop goes. Under operator.Main, the cache has it.
func StripManagedFields() toolscache.TransformFunc {
	return func(in any) (any, error) {
		obj, ok := in.(client.Object)
		if !ok || obj.GetManagedFields() == nil {
			return in, nil
		}
		var kept []metav1.ManagedFieldsEntry
		if _, common := reporting(obj); common {
			for _, m := range obj.GetManagedFields() {
				if fields := compact(m); fields != nil {
					kept = append(kept, metav1.ManagedFieldsEntry{Manager: m.Manager, Operation: m.Operation, Subresource: m.Subresource, FieldsV1: fields})
				}
			}
		}
		obj.SetManagedFields(kept)
		return in, nil
	}
}

// compact returns those of a manager's fields that matter, nil if there are none. The result is shared.
func compact(m metav1.ManagedFieldsEntry) *metav1.FieldsV1 {
	switch applied, last := manages(m, fieldApplied), manages(m, fieldLastPass); {
	case applied && last:
		return both
	case applied:
		return appliedOnly
	case last:
		return lastOnly
	}
	return nil
}

var (
	appliedOnly = metav1.NewFieldsV1(`{"f:status":{` + fieldApplied + `:{}}}`)
	lastOnly    = metav1.NewFieldsV1(`{"f:status":{` + fieldLastPass + `:{}}}`)
	both        = metav1.NewFieldsV1(`{"f:status":{` + fieldApplied + `:{},` + fieldLastPass + `:{}}}`)
)

func manages(m metav1.ManagedFieldsEntry, field string) bool {
	return m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), field)
}

// writtenByOthers reports whether anybody but owner wrote a field.
func writtenByOthers(obj client.Object, owner, field string) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager != owner && manages(m, field)
	})
}

// writtenAlone reports whether owner wrote a field, and nobody else. It is false if managedFields were dropped.
func writtenAlone(obj client.Object, owner, field string) bool {
	return !writtenByOthers(obj, owner, field) && slices.ContainsFunc(obj.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == owner && manages(m, field)
	})
}
