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

// Mark is the ownership mark of a resource: the object that owns it, and which of the resources that
// were created for the object it is.
type Mark struct {
	UID, Kind, Namespace, Name string
	Incarnation                int64
	Cluster                    string
}

// MarkFor returns the mark of an incarnation.
func MarkFor(obj metav1.Object, kind schema.GroupVersionKind, cluster string, incarnation int64) Mark {
	return Mark{
		UID: string(obj.GetUID()), Kind: kind.GroupKind().String(), Namespace: obj.GetNamespace(), Name: obj.GetName(),
		Incarnation: incarnation, Cluster: cluster,
	}
}

// Labels returns the mark as it is stored on the resource.
func (m Mark) Labels() map[string]string {
	return map[string]string{
		MarkCluster:     m.Cluster,
		MarkUID:         m.UID,
		MarkKind:        m.Kind,
		MarkNamespace:   m.Namespace,
		MarkName:        m.Name,
		MarkIncarnation: strconv.FormatInt(m.Incarnation, 10),
	}
}

// Bears reports whether the labels of a resource name the incarnation of m.
func (m Mark) Bears(found map[string]string) bool {
	return found[MarkIncarnation] == strconv.FormatInt(m.Incarnation, 10)
}

// MarkKeys returns all keys of a mark.
func MarkKeys() []string {
	return []string{MarkUID, MarkKind, MarkNamespace, MarkName, MarkIncarnation, MarkCluster}
}
