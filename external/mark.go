package external

import (
	"maps"

	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// Keys of an ownership mark. Keys and values use only characters that labels, tags and metadata of
// most APIs allow.
const (
	// MarkUID holds the UID of the object that owns the resource.
	MarkUID = record.MarkUID
	// MarkKind holds its kind, as "Stream.example.org".
	MarkKind = record.MarkKind
	// MarkNamespace holds its namespace, empty for a cluster-scoped kind.
	MarkNamespace = record.MarkNamespace
	// MarkName holds its name.
	MarkName = record.MarkName
	// MarkIncarnation holds the incarnation of the resource, from 1.
	MarkIncarnation = record.MarkIncarnation
	// MarkCluster holds the identity of the object's cluster: the UID of its namespace
	// kube-system.
	MarkCluster = record.MarkCluster
)

// Mark is the ownership mark on an external resource, stored as labels or tags. It identifies the
// object that owns the resource, and which of the resources that were created for that object it is.
type Mark map[string]string

// MarkOf returns the ownership mark among all labels, tags or metadata of a resource; nil if there
// is none.
func MarkOf(all map[string]string) Mark {
	if all[record.MarkUID] == "" {
		return nil
	}
	m := Mark{}
	for _, key := range record.MarkKeys() {
		if v, ok := all[key]; ok {
			m[key] = v
		}
	}
	return m
}

// On returns a copy of all, the labels, tags or metadata of a resource, with the mark added.
func (m Mark) On(all map[string]string) map[string]string {
	out := make(map[string]string, len(all)+len(m))
	maps.Copy(out, all)
	maps.Copy(out, m)
	return out
}

// Unmark returns a copy of all without any ownership mark. Use it in an [Unmarker], and to compare
// labels with the spec. If all is nil, so is the result.
func Unmark(all map[string]string) map[string]string {
	out := maps.Clone(all)
	for _, key := range record.MarkKeys() {
		delete(out, key)
	}
	return out
}
