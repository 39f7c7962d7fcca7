package external

// claim is whether a thing that exists may be treated as ours.
type claim int

const (
	claimRefused claim = iota
	claimOurs
	claimAdopt
)

// claimed applies the adoption policy. What another living object has marked is never
// taken, whatever the policy.
func claimed(f Facts) claim {
	switch f.Seen.Owner {
	case OwnerUs:
		if f.Record.Marker != MarkerNone {
			return claimOurs
		}
		return adoptFrom(f, AdoptIfMarked)
	case OwnerRecorded:
		return claimOurs
	case OwnerRestored:
		return adoptFrom(f, AdoptIfMarked)
	case OwnerNamesake:
		return adoptFrom(f, AdoptAlways)
	case OwnerNobody:
		if f.identical() {
			return adoptFrom(f, AdoptIfIdentical)
		}
		return adoptFrom(f, AdoptAlways)
	case OwnerOther:
	}
	return claimRefused
}

func adoptFrom(f Facts, least Adoption) claim {
	if f.Policy.Adoption >= least {
		return claimAdopt
	}
	return claimRefused
}

// identical: the thing is settled and is what the spec asks for.
func (f Facts) identical() bool {
	return f.Seen.Phase == PhaseAvailable && !f.Differs.any()
}

// ownsForDeletion: the thing is ours, or would be adopted because of its mark. What could
// be adopted for another reason but never was is not deleted.
func ownsForDeletion(f Facts) bool {
	switch f.Seen.Owner {
	case OwnerUs, OwnerRecorded, OwnerRestored:
		return claimed(f) != claimRefused
	case OwnerNobody, OwnerNamesake, OwnerOther:
	}
	return false
}
