package loop

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fields of the status about which it matters who wrote them, as managedFields has them.
const (
	fieldApplied  = `"f:appliedGeneration"`
	fieldLastPass = `"f:lastPass"`
)

// writtenByOthers reports whether anybody but owner wrote a field. It is false if the cache leaves managedFields out.
func writtenByOthers(obj client.Object, owner, field string) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager != owner && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), field)
	})
}
