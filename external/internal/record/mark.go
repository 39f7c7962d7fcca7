package record

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The keys of an ownership mark. Keys and values use only characters that labels, tags and
// metadata of most APIs allow.
const (
	// MarkUID holds the UID of the object that owns the resource.
	MarkUID = "trimtab-uid"
	// MarkKind holds its kind, as "Stream.example.org".
	MarkKind = "trimtab-kind"
	// MarkNamespace holds its namespace, empty for a cluster-wide kind.
	MarkNamespace = "trimtab-namespace"
	// MarkName holds its name.
	MarkName = "trimtab-name"
	// MarkIncarnation holds the incarnation of the resource, from 1.
	MarkIncarnation = "trimtab-incarnation"
	// MarkCluster holds the identity of the object's cluster: the UID of its namespace
	// kube-system.
	MarkCluster = "trimtab-cluster"
)

// MarkFor returns the mark of an incarnation.
func MarkFor(obj metav1.Object, kind schema.GroupVersionKind, cluster string, incarnation int64) map[string]string {
	return map[string]string{
		MarkCluster:     cluster,
		MarkUID:         string(obj.GetUID()),
		MarkKind:        kind.GroupKind().String(),
		MarkNamespace:   obj.GetNamespace(),
		MarkName:        obj.GetName(),
		MarkIncarnation: strconv.FormatInt(incarnation, 10),
	}
}

// MarkKeys returns all keys of a mark.
func MarkKeys() []string {
	return []string{MarkUID, MarkKind, MarkNamespace, MarkName, MarkIncarnation, MarkCluster}
}
