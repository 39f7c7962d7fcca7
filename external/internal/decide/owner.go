package decide

import "github.com/trimtab-dev/trimtab/external/internal/record"

// Claimant is the object whose ownership of a resource is in question.
type Claimant struct {
	// Mark is what its own resource bears.
	Mark record.Mark
	// Record is the object's own record. Inherited is that of an earlier object of the same kind,
	// namespace and name.
	Record, Inherited record.Record
	Unmarked          bool
	// Late reports whether the mark is set after the create.
	Late bool
	// Untried reports whether no create of the record's incarnation was ever called, or each was
	// refused. Without marks no existing resource can then be ours.
	Untried bool
	// Adoption is when the policy adopts a resource. From is the UID of the owner from which it
	// does, empty if none is named.
	Adoption Adoption
	From     string
}

// OwnerOf returns who owns the resource whose mark is found. The mark is proof. The record alone
// counts where a resource cannot bear a mark, and for an adopted resource as long as the policy
// would still adopt it. So writing a false record gains nothing.
func (c Claimant) OwnerOf(found map[string]string) Owner {
	ours := c.Record.Exists() && c.Record.UID == c.Mark.UID
	adopted := ours && c.Record.Adopted == record.AdoptedFrom(found)
	uid := found[record.MarkUID]
	switch {
	case c.Unmarked && ours && !c.Untried && c.Record.Adopted == "":
		return OwnerRecorded
	case uid != "" && uid == c.Mark.UID:
		return OwnerUs
	case uid == "" && ours && !c.Untried && c.Late && (c.Record.Given != "" || c.Record.Done.IsZero() && c.Record.Adopted == ""):
		return OwnerRecorded
	case uid == "":
		return recordedIf(adopted && c.Adoption >= AdoptIfIdentical, OwnerNobody)
	case uid == c.From:
		return recordedIf(adopted, OwnerStated)
	case found[record.MarkCluster] != c.Mark.Cluster:
		return OwnerForeign
	case !c.namesake(found):
		return OwnerOther
	case c.Inherited.Exists() && c.Inherited.UID == uid:
		return OwnerRestored
	}
	return recordedIf(adopted && c.Adoption >= AdoptIfMarked, OwnerNamesake)
}

func recordedIf(recorded bool, otherwise Owner) Owner {
	if recorded {
		return OwnerRecorded
	}
	return otherwise
}

func (c Claimant) namesake(found map[string]string) bool {
	return found[record.MarkKind] == c.Mark.Kind && found[record.MarkNamespace] == c.Mark.Namespace && found[record.MarkName] == c.Mark.Name
}
