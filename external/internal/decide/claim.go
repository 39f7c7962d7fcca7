package decide

import (
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// claim is whether an existing resource may be treated as ours.
type claim int

const (
	claimRefused claim = iota
	claimOurs
	claimAdopt
)

// claimed applies the adoption policy. A resource of another living object is never taken,
// whatever the policy: within the cluster the other object's claim decides, across clusters its
// mark, which only a policy that names that very owner overrides.
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

// notOurs is row 15: the resource belongs, or may belong, to another.
func notOurs(f Facts) Decision {
	if f.Seen.Owner != OwnerUs && f.Seen.Rival == RivalEqual {
		return stopped(15, ReasonContested)
	}
	return stopped(15, ReasonNotOurs)
}

// observeAgain observes a resource that seems to belong to another once more, if the observation
// may still show what belonged to an earlier object of the same name. A resource of a living
// object needs no second observation.
func observeAgain(f Facts, d Decision) Decision {
	if f.Seen.Rival == RivalNone && f.SinceMet < f.Grace {
		d.Wake = WakeSoon
	}
	return d
}

// unproven reports whether the resource is ours and could bear our mark but does not. Until it
// does, another cluster could take it for unowned.
func (f Facts) unproven() bool {
	return f.Seen.Owner == OwnerRecorded && f.CanMark && (f.Policy.Update || f.madeUnmarked() && f.Policy.Create)
}

// madeUnmarked reports whether the resource bears no mark because our create could not set one.
func (f Facts) madeUnmarked() bool { return f.MarkLater && f.Record.Marker == record.MarkerPending }

// decideMark is the second half of row 9: an adopted resource gets our mark, and nothing else
// happens to it until an observation shows the mark.
func decideMark(f Facts) Decision {
	switch {
	case f.Refused == ActionMark:
		return refused(f, ActionMark)
	case f.FutileMarks >= NotConvergingAfter && f.SinceMark >= f.Grace:
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

// identical reports whether the resource is available and matches the spec.
func (f Facts) identical() bool {
	return f.Seen.Phase == PhaseAvailable && !f.Differs.Any()
}

// ownsForDeletion reports whether the resource is ours, or would be adopted because of its mark. A
// resource that could be adopted for another reason but never was is not deleted.
func ownsForDeletion(f Facts) bool {
	switch f.Seen.Owner {
	case OwnerUs, OwnerRecorded, OwnerRestored:
		return claimed(f) != claimRefused
	case OwnerNobody, OwnerNamesake, OwnerOther, OwnerForeign, OwnerStated:
	}
	return false
}

// Standing is what an object's claim to a resource rests on.
type Standing struct {
	UID string
	// Since is the object's creation time, to the second. Asked is the time of its first record
	// for the resource, zero if there is none.
	Since, Claimed time.Time
	Place          record.Place
	// Holds reports whether the object's record says that the resource is its own, without proof,
	// or, if the resource does not exist, that the object was about to create it.
	Holds bool
	// Had reports whether the object's record says that the resource existed.
	Had bool
	// Deleting reports whether the object is being deleted, and Orphans whether its resource then
	// stays.
	Deleting, Orphans bool
}

// compare returns the standing of the claim o beside s. A record that may be true precedes a mere
// wish, and an older wish precedes a younger one. Two records of one resource block each other:
// one of them is wrong, and nothing shows which. If both objects are being deleted, the older one
// deletes the resource.
func (s Standing) compare(o Standing) Rival {
	switch {
	case !s.Place.Reaches(o.Place), s.Deleting && o.Deleting && !o.Orphans && s.before(o):
		return RivalNone
	case s.Holds && o.Holds:
		return RivalEqual
	case o.Holds, !s.Holds && o.before(s):
		return RivalHolds
	}
	return RivalNone
}

// Rivalry compares two claims. If the resource does not exist, an object whose record names it had
// it, or was about to create it, and precedes one that only wishes for it. Of two such objects the
// one that had it earlier comes first if marks show the owner later; without marks nothing shows
// which record is true.
func Rivalry(ours, theirs Standing, markProves bool) Rival {
	if markProves && ours.Holds && theirs.Holds {
		theirs.Holds = theirs.earlier(ours)
		ours.Holds = !theirs.Holds
	}
	return ours.compare(theirs)
}

// earlier reports whether the record of s, rather than that of o, is likely to be the one of the
// object that had the resource.
func (s Standing) earlier(o Standing) bool {
	switch {
	case s.Had != o.Had:
		return s.Had
	case !s.Claimed.Equal(o.Claimed):
		return s.Claimed.Before(o.Claimed)
	}
	return s.before(o)
}

func (s Standing) before(o Standing) bool {
	switch {
	case !s.Since.Equal(o.Since):
		return s.Since.Before(o.Since)
	case s.Claimed.IsZero() != o.Claimed.IsZero():
		return o.Claimed.IsZero()
	case !s.Claimed.Equal(o.Claimed):
		return s.Claimed.Before(o.Claimed)
	}
	return s.UID < o.UID
}
