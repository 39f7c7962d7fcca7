package decide

import "github.com/trimtab-dev/trimtab/external/internal/record"

// Claimant says who asks whose a thing is.
type Claimant struct {
	Mark map[string]string
	// Record is the object's own; inherited is that of an object which was at the very same
	// place before it.
	Record, Inherited record.Record
	Unmarked          bool
	// Late: the mark comes after the create.
	Late bool
	// Untried: no create of the record's incarnation was ever called, or each was refused, so
	// that without marks nothing that exists can be ours.
	Untried bool
	// Adoption and from are what the policy says: when to take over, and the UID of the
	// owner from whom to take it, empty if none is named.
	Adoption Adoption
	From     string
}

// OwnerOf says whose the thing with the mark found is. Its mark proves it. The record alone
// counts where no mark can be, and of what was taken over as long as the policy would still
// take it over: whoever can write the record gains nothing by that.
func (c Claimant) OwnerOf(found map[string]string) Owner {
	ours := c.Record.Exists() && c.Record.UID == c.Mark[record.MarkUID]
	adopted := ours && c.Record.Adopted == record.AdoptedFrom(found)
	uid := found[record.MarkUID]
	switch {
	case c.Unmarked && ours && !c.Untried && c.Record.Adopted == "":
		return OwnerRecorded
	case uid != "" && uid == c.Mark[record.MarkUID]:
		return OwnerUs
	case uid == "" && ours && !c.Untried && c.Late && (c.Record.Given != "" || c.Record.Done.IsZero() && c.Record.Adopted == ""):
		return OwnerRecorded
	case uid == "":
		return recordedIf(adopted && c.Adoption >= AdoptIfIdentical, OwnerNobody)
	case uid == c.From:
		return recordedIf(adopted, OwnerStated)
	case found[record.MarkCluster] != c.Mark[record.MarkCluster]:
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
	for _, key := range []string{record.MarkKind, record.MarkNamespace, record.MarkName} {
		if found[key] != c.Mark[key] {
			return false
		}
	}
	return true
}
