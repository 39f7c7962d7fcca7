package decide

import (
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// Facts is all that a decision may rest on. The struct is comparable, holds no text and no
// time of day, and its zero value is a new object of which nothing is known. Status is not
// among the facts: what people write there changes nothing.
type Facts struct {
	// Deleting: the object carries the deletion mark.
	Deleting bool
	// Paused is what the object's pause annotation stops.
	Paused Pause
	// Policy is what may be done to the thing.
	Policy Policy
	// Scope tells whether the external API can be called at all.
	Scope Scope
	// Dependencies tells whether the objects that this one needs are ready.
	Dependencies Dependencies
	// SinceMet is how long this process has known the object.
	SinceMet time.Duration
	// SinceUnready is how long this process has known what they lack.
	SinceUnready time.Duration
	// Identity is how a thing is found again whose creation nobody saw end.
	Identity Identity
	// UniqueNames: a second create of a name makes no second thing.
	UniqueNames bool
	// Fresh: the object that was read is certainly not an old copy of one that is gone:
	// this process wrote to it, or read it from the API server itself.
	Fresh bool
	// Record is what is durable about the thing.
	Record RecordFacts
	// Creation is what is known about creating the record's incarnation.
	Creation Creation
	// SinceCreate is how long ago the last create was, or may have been.
	SinceCreate time.Duration
	// Grace is how long after a create the API may deny what exists, and after a loss show
	// what does not.
	Grace time.Duration
	// Seen is what the last look in this pass showed. It is cleared by every call that
	// can change the outside.
	Seen Seen
	// Found is what a search by mark showed.
	Found Found
	// Differs is how the thing differs from the spec.
	Differs Differs
	// SameUpdates counts changes (updates, or deletes of what is to be made anew) that the API
	// accepted and that left this very difference, for this generation.
	SameUpdates int
	// Unconfirmed: an update was accepted before that was to remove the same differences as the
	// last one, and no observation has shown since that it did.
	Unconfirmed bool
	// VainMarks counts marks that the API accepted, for this generation, and that no look shows;
	// SinceMark is how long ago the first was.
	VainMarks int
	SinceMark time.Duration
	// Refused is the call that the API refused for good for this very spec and policy.
	Refused Action
	// RefusedAs is what that refusal meant.
	RefusedAs Class
	// NewSpec: as far as this process knows, the spec was never tried on a thing that failed.
	NewSpec bool
	// Op is a long-running operation that the API lets us follow.
	Op Op
	// Approval is whether a person must agree to losing what the thing holds.
	Approval Approval
	// Unpublished: outputs for other objects are not as they should be.
	Unpublished bool
	// Unprepared: the driver has something to do before a deletion, and has not done it.
	Unprepared bool
	// CanMark and CanUnmark: the driver can put the ownership mark on a thing that exists, or
	// take it off.
	CanMark, CanUnmark bool
	// MarkLater: what a create makes bears no mark until it is put on.
	MarkLater bool
	// Did is what this pass has called already.
	Did Did
	// Create is what the create of this pass came to, if it was refused.
	Create Answer
	// DeleteAccepted: the API accepted a delete of the thing since it was last created.
	DeleteAccepted bool
	// Last is what the last call of this pass came to.
	Last Answer

	// What follows decides nothing; it is for what people are told.

	// Generation is the object's.
	Generation int64
	// ReadyFor is the generation for whose spec the thing was last seen to be as asked; 0 if
	// for none, as far as this process knows or its own field manager wrote down.
	ReadyFor int64
	// Depends: the thing may need other objects.
	Depends bool
	// LastTry: if this pass fails no retry follows.
	LastTry bool
	// Told is what this process told last.
	Told Told
}

// Told is what this process told last of a thing. Its zero value: nothing yet.
type Told struct {
	// State is empty if nothing was told.
	State State
	// Creating, Updating and Failed are what the conditions said.
	Creating, Updating, Failed bool
	// Look is the reason of a look that failed, if that is what was told; else empty.
	Look Reason
}

// Pause is what the pause annotation stops.
type Pause int

const (
	// PauseNone stops nothing.
	PauseNone Pause = iota
	// PauseChanges stops changes of the thing; deletion goes on.
	PauseChanges
	// PauseAll stops deletion too.
	PauseAll
)

// Policy is what may be done to the thing. Its zero value is read-only and adopts nothing.
type Policy struct {
	// Create, Update and Delete are the permissions.
	Create, Update, Delete bool
	// Adoption says when something that exists already is taken over.
	Adoption Adoption
	// Orphan leaves the thing when the object goes.
	Orphan bool
	// DeletionUnclear: the deletion policy cannot be read, so nothing is deleted or left.
	DeletionUnclear bool
}

// Adoption says when something that exists already is taken over.
type Adoption int

const (
	// AdoptNever: only what the record vouches for is ours.
	AdoptNever Adoption = iota
	// AdoptIfMarked: what bears our mark is ours.
	AdoptIfMarked
	// AdoptIfIdentical: besides, what bears no mark and does not differ.
	AdoptIfIdentical
	// AdoptAlways: besides, whatever no other living object has marked.
	AdoptAlways
)

// Scope tells whether the external API can be called.
type Scope int

const (
	// ScopeOpen: it can, as far as is known.
	ScopeOpen Scope = iota
	// ScopeUnconnectable: there is no client.
	ScopeUnconnectable
	// ScopeThrottled: it asked for fewer calls.
	ScopeThrottled
	// ScopeDown: looks at one object after the other failed, so that it is tried for one
	// object at a time.
	ScopeDown
	// ScopeOccupied: a call for this very object was left behind and has not returned.
	ScopeOccupied
)

// Dependencies tells whether the objects that this one needs are ready.
type Dependencies int

const (
	// DependenciesReady: all are, or there are none.
	DependenciesReady Dependencies = iota
	// DependenciesUnready: one does not exist or is not ready.
	DependenciesUnready
)

// Identity is how a thing is found again whose creation nobody saw end, best first.
type Identity int

const (
	// IdentityDeterministic: its name is chosen before it is created.
	IdentityDeterministic Identity = iota
	// IdentityToken: repeating the create with the same token answers with the first thing.
	IdentityToken
	// IdentityMark: it can be searched for by its ownership mark.
	IdentityMark
	// IdentityNone: it cannot be found.
	IdentityNone
)

// RecordFacts is what is durable about the thing.
type RecordFacts struct {
	// KnownID: the thing's identity is known.
	KnownID bool
	// Incarnation counts creations, 0 before the first.
	Incarnation int64
	// Marker is how far the creation of this incarnation is recorded.
	Marker record.Recorded
	// Expired: the marker is too old for a create to be called under it.
	Expired bool
	// Doubtful: the API refused the create, for another reason than that the name is taken,
	// and no mark can tell whether it made the thing all the same.
	Doubtful bool
	// Trouble is why the record cannot be used.
	Trouble Trouble
}

// Trouble is why the record cannot be used.
type Trouble int

const (
	// TroubleNone: it can.
	TroubleNone Trouble = iota
	// TroubleCorrupt: it cannot be read.
	TroubleCorrupt
	// TroubleName: the spec gives no valid name.
	TroubleName
	// TroubleRenamed: the spec gives another name than the recorded one.
	TroubleRenamed
	// TroubleEndpoint: the thing was made at another endpoint than the operator talks to.
	TroubleEndpoint
	// TroubleGiven: the API assigned the thing another identity than its name.
	TroubleGiven
)

// Creation is what is known about creating the record's incarnation.
type Creation int

const (
	// CreationNone: create was certainly not called.
	CreationNone Creation = iota
	// CreationRefused: this process called it, and each answer meant that nothing was made.
	// Drivers take errors for such answers that are none.
	CreationRefused
	// CreationUntold: the record is the first on this object, as far as the object tells. Its
	// metadata may have been lost, so that only a look tells whether anything was ever made.
	CreationUntold
	// CreationPossible: it may have been called, and its effect may still come.
	CreationPossible
	// CreationSettled: an earlier process may have called it, so long ago that what came of it
	// shows by now.
	CreationSettled
	// CreationCalled: this process called it and has not seen the thing since.
	CreationCalled
	// CreationSeen: the thing was seen after its creation.
	CreationSeen
)

// Seen is what a look showed.
type Seen struct {
	// Looked is false until there was one.
	Looked bool
	// Phase is where the thing stands.
	Phase Phase
	// Source is where this is known from.
	Source Source
	// Recoverable tells for PhaseFailed whether trying again can help.
	Recoverable bool
	// Owner is whose the thing is.
	Owner Owner
	// Marked: its mark is that of the very incarnation that the record is about.
	Marked bool
	// Rival is another living object that stands for the same thing. It counts only where
	// no mark proves the thing to be ours.
	Rival Rival
}

// Source is where the state of a resource is known from.
type Source int

const (
	// SourceRead: this pass observed it.
	SourceRead Source = iota
	// SourceAnswer: the API returned it with its answer to a change of this pass.
	SourceAnswer
	// SourceMemory: the API returned it with an earlier answer, so short a time ago that a call may
	// take as long, and its reads are never behind writes.
	SourceMemory
)

// Rival is another living object that stands for the same thing.
type Rival int

const (
	// RivalNone: there is none, or ours is the better claim.
	RivalNone Rival = iota
	// RivalHolds: its claim is better than ours.
	RivalHolds
	// RivalEqual: both records say that the thing is theirs, and nothing proves either.
	RivalEqual
)

// Owner is whose a thing is.
type Owner int

const (
	// OwnerNobody: it bears no mark, and the record does not vouch for it.
	OwnerNobody Owner = iota
	// OwnerUs: it bears our mark.
	OwnerUs
	// OwnerRecorded: the record alone says that it is ours; of a thing that was taken over,
	// the adoption policy still agrees.
	OwnerRecorded
	// OwnerRestored: it bears the mark of our object as it was before a backup was
	// restored, and the record vouches for that.
	OwnerRestored
	// OwnerNamesake: it bears the mark of another object of our kind and name.
	OwnerNamesake
	// OwnerOther: it bears another object's mark.
	OwnerOther
	// OwnerForeign: it bears the mark of another cluster, whose objects nobody here can see.
	OwnerForeign
	// OwnerStated: it bears the mark of the very owner from whom the adoption policy says to
	// take it.
	OwnerStated
)

// Found is what a search by mark showed.
type Found int

const (
	// FoundNotAsked: there was no search in this pass.
	FoundNotAsked Found = iota
	// FoundNothing, FoundOne and FoundMany count what bears our mark.
	FoundNothing
	FoundOne
	FoundMany
)

// Differs is how the thing differs from the spec, by what it takes.
type Differs struct {
	// InPlace, Recreate and Unsupported tell whether there is a change of that effect.
	InPlace, Recreate, Unsupported bool
	// Ignored tells whether there is a difference that is shown and not acted on. It makes
	// the thing no less as it should be.
	Ignored bool
}

// Ours tells whether the thing is ours without any adoption.
func (s Seen) Ours() bool {
	return s.Owner == OwnerUs || s.Owner == OwnerRecorded && s.Rival == RivalNone
}

// Any tells whether there is a difference to act on.
func (d Differs) Any() bool { return d.InPlace || d.Recreate || d.Unsupported }

// Op is a long-running operation that the API lets us follow.
type Op struct {
	// State is where it stands.
	State OpState
	// Of is the call that started it: ActionCreate, ActionUpdate or ActionDelete.
	Of Action
	// Polled: this pass asked already.
	Polled bool
	// Cancellable: the driver can cancel it.
	Cancellable bool
}

// OpState is where an operation stands.
type OpState int

const (
	// OpNone: there is none, or it has ended.
	OpNone OpState = iota
	// OpRunning: it goes on.
	OpRunning
	// OpOverdue: it goes on past its deadline.
	OpOverdue
)

// Approval is whether a person must agree to losing what a thing holds.
type Approval int

const (
	// ApprovalNotNeeded: nobody is asked.
	ApprovalNotNeeded Approval = iota
	// ApprovalMissing: somebody must agree first.
	ApprovalMissing
	// ApprovalGiven: somebody agreed.
	ApprovalGiven
)

// Did is what a pass has called already. Each is called at most once per pass.
type Did struct {
	Create, Update, Delete, Cancel, Mark, Unmark bool
}

// Answer is what the last call of a pass came to.
type Answer struct {
	// Of is the call; ActionNone before the first.
	Of Action
	// Failed tells an error; Class is what it means.
	Failed bool
	Class  Class
	// Timeout: the call ran into its deadline.
	Timeout bool
}
