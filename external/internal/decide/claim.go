package decide

import (
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// claim is whether a thing that exists may be treated as ours.
type claim int

const (
	claimRefused claim = iota
	claimOurs
	claimAdopt
)

// claimed applies the adoption policy. What another living object has is never taken,
// whatever the policy: within the cluster its claim tells, across clusters its mark, which
// only a policy that names that very owner overrides.
func claimed(f Facts) claim {
	if f.Seen.Owner != OwnerUs && f.Seen.Rival != RivalNone {
		return claimRefused
	}
	switch f.Seen.Owner {
	case OwnerUs:
		if f.Record.Marker != record.MarkerNone {
			return claimOurs
		}
		return adoptFrom(f, AdoptIfMarked)
	case OwnerStated:
		return claimAdopt
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
	case OwnerOther, OwnerForeign:
	}
	return claimRefused
}

// notOurs is row 15: the thing is, or may be, somebody else's.
func notOurs(f Facts) Decision {
	if f.Seen.Owner != OwnerUs && f.Seen.Rival == RivalEqual {
		return stopped(15, ReasonContested)
	}
	return stopped(15, ReasonNotOurs)
}

// lookedBehind looks once more at what seems to be somebody else's, if a look may still show
// what went with an earlier object of the name. What a living object has is not of that kind.
func lookedBehind(f Facts, d Decision) Decision {
	if f.Seen.Rival == RivalNone && f.SinceMet < f.Grace {
		d.Wake = WakeSoon
	}
	return d
}

// unproven: the thing is ours, and could say so itself but does not. Until it does, another
// cluster could take it for nobody's.
func (f Facts) unproven() bool {
	return f.Seen.Owner == OwnerRecorded && f.CanMark && (f.Policy.Update || f.madeUnmarked() && f.Policy.Create)
}

// madeUnmarked: the thing bears no mark because a create of ours cannot carry it.
func (f Facts) madeUnmarked() bool { return f.MarkLater && f.Record.Marker == record.MarkerPending }

// decideMark is the second half of row 9: a thing that was taken over gets our mark, and
// nothing else happens to it until the mark is seen.
func decideMark(f Facts) Decision {
	switch {
	case f.Refused == ActionMark:
		return refused(f, ActionMark)
	case f.VainMarks >= NotConvergingAfter && f.SinceMark >= f.Grace:
		return stopped(9, ReasonNotConverging)
	}
	d := Decision{
		Row: 9, Action: ActionMark, State: StateVerifying, Reason: ReasonAdopting,
		Show: Show{Ready: ShowFalse, Creating: ShowFalse, Updating: ShowFalse, Failed: ShowFalse, DependenciesReady: ShowTrue},
	}
	if f.madeUnmarked() {
		d.State, d.Reason, d.Show.Creating = StateCreating, ReasonCreating, ShowTrue
	}
	if f.Did.Mark {
		d.Action, d.Wake = ActionNone, WakeSoon
	}
	return d
}

func adoptFrom(f Facts, least Adoption) claim {
	if f.Policy.Adoption >= least {
		return claimAdopt
	}
	return claimRefused
}

// identical: the thing is settled and is what the spec asks for.
func (f Facts) identical() bool {
	return f.Seen.Phase == PhaseAvailable && !f.Differs.Any()
}

// ownsForDeletion: the thing is ours, or would be adopted because of its mark. What could
// be adopted for another reason but never was is not deleted.
func ownsForDeletion(f Facts) bool {
	switch f.Seen.Owner {
	case OwnerUs, OwnerRecorded, OwnerRestored:
		return claimed(f) != claimRefused
	case OwnerNobody, OwnerNamesake, OwnerOther, OwnerForeign, OwnerStated:
	}
	return false
}

// Standing is what an object's claim to a thing rests on.
type Standing struct {
	UID string
	// Since is when the object was made, to the second; asked when its first record for the thing
	// was written, zero if there is none.
	Since, Asked time.Time
	Place        record.Place
	// Holds: the object's record says that the thing is its own, and nothing proves it; or, of
	// a thing that is not there, that it was to be.
	Holds bool
	// Had: the object's record says that the thing was there.
	Had bool
	// Ends: the object is being deleted; leaves: and its thing is to stay.
	Ends, Leaves bool
}

// against tells whether the claim o stands in the way of s. A record that may be true comes
// before a mere wish, an older wish before a younger. Two records of one thing stand in each
// other's way: one of them is not true, and nobody can tell which. Of two objects that both
// go, the older deletes.
func (s Standing) against(o Standing) Rival {
	switch {
	case !s.Place.Reaches(o.Place), s.Ends && o.Ends && !o.Leaves && s.before(o):
		return RivalNone
	case s.Holds && o.Holds:
		return RivalEqual
	case o.Holds, !s.Holds && o.before(s):
		return RivalHolds
	}
	return RivalNone
}

// Rivalry compares two claims. Where there is nothing, an object whose record names the thing
// had it, or was about to, and comes before one that wishes for it. Of two such the one that was
// there before comes first if marks tell later whose the thing is; without marks nobody knows
// which record is true.
func Rivalry(ours, theirs Standing, markTells bool) Rival {
	if markTells && ours.Holds && theirs.Holds {
		theirs.Holds = theirs.earlier(ours)
		ours.Holds = !theirs.Holds
	}
	return ours.against(theirs)
}

// earlier tells whether the record of s is rather that of an object which had the thing.
func (s Standing) earlier(o Standing) bool {
	switch {
	case s.Had != o.Had:
		return s.Had
	case !s.Asked.Equal(o.Asked):
		return s.Asked.Before(o.Asked)
	}
	return s.before(o)
}

func (s Standing) before(o Standing) bool {
	switch {
	case !s.Since.Equal(o.Since):
		return s.Since.Before(o.Since)
	case s.Asked.IsZero() != o.Asked.IsZero():
		return o.Asked.IsZero()
	case !s.Asked.Equal(o.Asked):
		return s.Asked.Before(o.Asked)
	}
	return s.UID < o.UID
}
