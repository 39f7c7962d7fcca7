package external

import (
	"maps"

	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// The keys of an ownership mark. Keys and values are made of what labels, tags and metadata
// of most APIs allow.
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

// Mark is the ownership mark on an external thing, as labels or tags: which object owns it,
// and which of the things made for that object, one after the other, it is.
type Mark map[string]string

// MarkOf picks the ownership mark out of all the labels, tags or metadata that a thing
// carries. It is nil if they hold none.
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

// On adds the mark to the labels, tags or metadata that a thing is to carry and returns
// them; all itself does not change.
func (m Mark) On(all map[string]string) map[string]string {
	out := make(map[string]string, len(all)+len(m))
	maps.Copy(out, all)
	maps.Copy(out, m)
	return out
}

// Unmark returns labels, tags or metadata without any ownership mark: for [Unmarker], and
// for comparing what a thing carries with what the spec asks for. all itself does not
// change; nil stays nil.
func Unmark(all map[string]string) map[string]string {
	out := maps.Clone(all)
	for _, key := range record.MarkKeys() {
		delete(out, key)
	}
	return out
}
