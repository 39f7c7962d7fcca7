package external

import (
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The keys of an ownership mark. They and the values are made of what labels, tags and
// metadata of most APIs allow.
const (
	// MarkUID holds the UID of the object that owns the thing.
	MarkUID = "trimtab-uid"
	// MarkKind holds its kind, as "Stream.example.org".
	MarkKind = "trimtab-kind"
	// MarkNamespace holds its namespace, empty for a cluster-wide kind.
	MarkNamespace = "trimtab-namespace"
	// MarkName holds its name.
	MarkName = "trimtab-name"
	// MarkIncarnation holds the incarnation of the thing, from 1.
	MarkIncarnation = "trimtab-incarnation"
	// MarkCluster holds the identity of the object's cluster: the UID of its namespace
	// kube-system.
	MarkCluster = "trimtab-cluster"
)

// Mark is the ownership mark on an external thing, as labels or tags: which object owns it,
// and which of the things made for that object, one after the other, it is.
type Mark map[string]string

// markFor makes the mark of an incarnation.
func markFor(obj client.Object, kind schema.GroupVersionKind, cluster string, incarnation int64) Mark {
	return Mark{
		MarkCluster:     cluster,
		MarkUID:         string(obj.GetUID()),
		MarkKind:        kind.GroupKind().String(),
		MarkNamespace:   obj.GetNamespace(),
		MarkName:        obj.GetName(),
		MarkIncarnation: strconv.FormatInt(incarnation, 10),
	}
}

// MarkOf picks the ownership mark out of all the labels, tags or metadata that a thing
// carries. It is nil if they hold none.
func MarkOf(all map[string]string) Mark {
	if all[MarkUID] == "" {
		return nil
	}
	m := Mark{}
	for _, key := range markKeys() {
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
	for _, key := range markKeys() {
		delete(out, key)
	}
	return out
}

func markKeys() []string {
	return []string{MarkUID, MarkKind, MarkNamespace, MarkName, MarkIncarnation, MarkCluster}
}

// claimant says who asks whose a thing is.
type claimant struct {
	mark Mark
	// record is the object's own; inherited is that of an object which was at the very same
	// place before it.
	record, inherited record
	unmarked          bool
	// late: the mark comes after the create.
	late bool
	// untried: no create of the record's incarnation was ever called, or each was refused, so
	// that without marks nothing that exists can be ours.
	untried bool
	// adoption and from are what the policy says: when to take over, and the UID of the
	// owner from whom to take it, empty if none is named.
	adoption Adoption
	from     string
}

// ownerOf says whose the thing with the mark found is. Its mark proves it. The record alone
// counts where no mark can be, and of what was taken over as long as the policy would still
// take it over: whoever can write the record gains nothing by that.
func (c claimant) ownerOf(found Mark) Owner {
	ours := c.record.exists() && c.record.UID == c.mark[MarkUID]
	adopted := ours && c.record.Adopted == adoptedFrom(found)
	uid := found[MarkUID]
	switch {
	case c.unmarked && ours && !c.untried && c.record.Adopted == "":
		return OwnerRecorded
	case uid != "" && uid == c.mark[MarkUID]:
		return OwnerUs
	case uid == "" && ours && !c.untried && c.late && (c.record.Given != "" || c.record.Done.IsZero() && c.record.Adopted == ""):
		return OwnerRecorded
	case uid == "":
		return recordedIf(adopted && c.adoption >= AdoptIfIdentical, OwnerNobody)
	case uid == c.from:
		return recordedIf(adopted, OwnerStated)
	case found[MarkCluster] != c.mark[MarkCluster]:
		return OwnerForeign
	case !c.namesake(found):
		return OwnerOther
	case c.inherited.exists() && c.inherited.UID == uid:
		return OwnerRestored
	}
	return recordedIf(adopted && c.adoption >= AdoptIfMarked, OwnerNamesake)
}

func recordedIf(recorded bool, otherwise Owner) Owner {
	if recorded {
		return OwnerRecorded
	}
	return otherwise
}

func (c claimant) namesake(found Mark) bool {
	for _, key := range []string{MarkKind, MarkNamespace, MarkName} {
		if found[key] != c.mark[key] {
			return false
		}
	}
	return true
}
