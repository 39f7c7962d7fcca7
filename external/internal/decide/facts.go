package decide

import (
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// Facts is everything a decision may depend on. The struct is comparable and holds no text and no
// wall-clock time. Its zero value is a new object about which nothing is known. Status is not
// among the facts: whatever users write there changes nothing.
type Facts struct {
	// Deleting reports whether the object has a deletion timestamp.
	Deleting bool
	// SinceDelete is the time since then.
	SinceDelete time.Duration
	// Paused is what the object's pause annotation stops.
	Paused Pause
	// Policy is what may be done to the resource.
	Policy Policy
	// Scope is whether the external API can be called at all.
	Scope Scope
	// Dependencies is whether the objects that this one needs are ready.
	Dependencies Dependencies
	// SinceMet is how long this process has known the object.
	SinceMet time.Duration
	// SinceUnready is how long this process has known that a dependency is not ready.
	SinceUnready time.Duration
	// Identity is how a resource is found again if the answer to its create was lost.
	Identity Identity
	// UniqueNames reports whether a second create of the same name makes no second resource.
	UniqueNames bool
	// Fresh reports whether the object that was read is certainly not a stale copy of a deleted
	// one, because this process wrote to it or read it from the API server itself.
	Fresh bool
	// Creation is what is known about creating the record's incarnation.
	Creation Creation
	// Record is what the resource's record holds.
	Record RecordFacts
	// SinceCreate is the time since the last create that was, or may have been, called.
	SinceCreate time.Duration
	// SinceLost is the time since the last create that may have been accepted and whose answer is not known. For as long
	// as LostGrace, it may go on in an operation that nothing shows.
	SinceLost, LostGrace time.Duration
	// Grace is how long after a create the API may not show the resource yet, and how long after a
	// loss it may still show it.
	Grace time.Duration
	// Seen is the last observation of this pass. Every call that can change the external resource
	// clears it.
	Seen Seen
	// Found is the result of a search by mark.
	Found Found
	// Differs is how the resource differs from the spec.
	Differs Differs
	// SameUpdates counts the changes (updates, or deletes in order to recreate) that the API
	// accepted for this generation and that left this very difference.
	SameUpdates int
	// Unconfirmed reports whether an earlier update was accepted that should have removed the same
	// differences as the last one, without any observation since that shows that it did, or whether a
	// read contradicted an earlier answer that the resource is gone.
	Unconfirmed bool
	// FutileDeletes counts the deletions for this generation after which the resource was gone, according
	// to the driver, and a read showed it nevertheless, although nothing was created meanwhile.
	FutileDeletes int
	// FutileMarks counts the marks that the API accepted for this generation and that no observation
	// shows; SinceMark is the time since the first of them.
	FutileMarks int
	SinceMark   time.Duration
	// Refused is the call that the API permanently refused for this very spec and policy.
	Refused Action
	// RefusedAs is the class of that refusal.
	RefusedAs Class
	// NewSpec reports whether, as far as this process knows, this spec was never tried on a failed
	// resource.
	NewSpec bool
	// Op is an operation that the API lets the driver poll.
	Op Op
	// Spent reports whether the API assigns ids, and the operation that was to create this incarnation has
	// failed: another create needs a record of its own.
	Spent bool
	// Approval is whether a user must agree to losing what the resource holds.
	Approval Approval
	// Unpublished reports whether the connection details that users see are not those of the resource.
	Unpublished bool
	// Incomplete reports whether a connection detail is missing that only the answer to a create has.
	Incomplete bool
	// Publish is the answer to this pass's attempt to bring them up to date, if that failed.
	Publish Answer
	// Finishes reports whether the driver has something left to do in the cluster when the resource matches the spec.
	Finishes bool
	// Finish is the answer to this pass's attempt to do it, if that failed.
	Finish Answer
	// Uncompleted reports whether the API has chosen what the spec leaves unset, and the user wants it there.
	Uncompleted bool
	// Unprepared reports whether the driver still has to do something before a deletion.
	Unprepared bool
	// CanMark and CanUnmark report whether the driver can set, or remove, the ownership mark
	// on an existing resource.
	CanMark, CanUnmark bool
	// MarkLater reports whether a create cannot set the mark, so that a second call sets it.
	MarkLater bool
	// Did is what this pass has already called.
	Did Did
	// Create is the answer to this pass's create, if it was refused.
	Create Answer
	// DeleteAccepted reports whether the API has accepted a delete of the resource since it was
	// last created.
	DeleteAccepted bool
	// Last is the answer to the last call of this pass.
	Last Answer

	// The fields below decide nothing; they are for status and events.

	// Generation is the object's generation.
	Generation int64
	// ReadyFor is the generation whose spec the resource was last seen to match; 0 if none, as far
	// as this process knows or its own field manager wrote down.
	ReadyFor int64
	// Depends reports whether the resource may need other objects.
	Depends bool
	// LastTry reports whether no retry follows if this pass fails.
	LastTry bool
	// LastReport is what this process reported last.
	LastReport LastReport
	// Occurred is what has happened to the object before this report.
	Occurred Occurred
}

// Occurred are the conditions whose time has come since the object exists, as far as its status and this process know. They
// stay, as False; the others are not shown.
type Occurred struct{ Creating, Updating, Failed bool }

// LastReport is what this process last reported about a resource. Its zero value means that nothing was
// reported yet.
type LastReport struct {
	// State is empty if nothing was reported.
	State State
	// Creating, Updating and Failed are the last reported conditions.
	Creating, Updating, Failed bool
	// ObserveFailure is the reason of a failed observation, if that was reported; otherwise empty.
	ObserveFailure Reason
}

// Pause is what the pause annotation stops.
type Pause uint8

const (
	// PauseNone stops nothing.
	PauseNone Pause = iota
	// PauseChanges stops changes of the resource; deletion goes on.
	PauseChanges
	// PauseAll stops deletion too.
	PauseAll
)

// Policy is what may be done to the resource. Its zero value is read-only and adopts nothing.
type Policy struct {
	// Create, Update and Delete are the permissions.
	Create, Update, Delete bool
	// Adoption is when an existing resource is adopted.
	Adoption Adoption
	// Orphan leaves the resource in place when the object is deleted.
	Orphan bool
	// DeletionUnclear reports whether the deletion policy is invalid, in which case the resource
	// is neither deleted nor orphaned.
	DeletionUnclear bool
}

// Adoption is when an existing resource is adopted. Each level includes the ones before it.
type Adoption uint8

const (
	// AdoptNever means that a resource is ours only if the record says so.
	AdoptNever Adoption = iota
	// AdoptIfMarked adopts a resource that bears our mark.
	AdoptIfMarked
	// AdoptIfIdentical also adopts one that bears no mark and does not differ.
	AdoptIfIdentical
	// AdoptAlways also adopts whatever no other living object has marked.
	AdoptAlways
)

// Scope is whether the external API can be called.
type Scope uint8

const (
	// ScopeOpen means that the API can be called, as far as is known.
	ScopeOpen Scope = iota
	// ScopeUnconnectable means that there is no client.
	ScopeUnconnectable
	// ScopeThrottled means that the API asked for fewer calls.
	ScopeThrottled
	// ScopeDown means that observations of several objects in a row failed, so the API is tried
	// for one object at a time.
	ScopeDown
	// ScopeOccupied means that an earlier call for this very object was abandoned and has not
	// returned.
	ScopeOccupied
)

// Dependencies is whether the objects that this one needs are ready.
type Dependencies uint8

const (
	// DependenciesReady means that all of them are ready, or that there are none.
	DependenciesReady Dependencies = iota
	// DependenciesUnready means that one does not exist or is not ready.
	DependenciesUnready
)

// Identity is how a resource is found again if the answer to its create was lost, best first.
type Identity uint8

const (
	// IdentityDeterministic means that the name is chosen before the create.
	IdentityDeterministic Identity = iota
	// IdentityToken means that repeating the create with the same token returns the resource that
	// the first one made.
	IdentityToken
	// IdentityMark means that the resource can be searched for by its ownership mark.
	IdentityMark
	// IdentityNone means that the resource cannot be found.
	IdentityNone
)

// RecordFacts is what the resource's record holds.
type RecordFacts struct {
	// Incarnation counts creations; 0 before the first.
	Incarnation int64
	// KnownID reports whether the resource's identity is known.
	KnownID bool
	// Marker is how far the creation of this incarnation is recorded.
	Marker record.Recorded
	// Expired reports whether the marker is too old for calling a create.
	Expired bool
	// Doubtful reports whether the API refused the create for a reason other than a name conflict,
	// and no mark shows whether it made the resource nevertheless.
	Doubtful bool
	// Trouble is why the record cannot be used.
	Trouble Trouble
}

// Trouble is why the record cannot be used.
type Trouble uint8

const (
	// TroubleNone means that the record can be used.
	TroubleNone Trouble = iota
	// TroubleCorrupt means that the record cannot be read.
	TroubleCorrupt
	// TroubleName means that the spec yields no valid name.
	TroubleName
	// TroubleRenamed means that the spec yields a name other than the recorded one.
	TroubleRenamed
	// TroubleEndpoint means that the resource was created at another endpoint than the one the
	// operator calls.
	TroubleEndpoint
	// TroubleGiven means that the API assigned the resource an identity other than its name.
	TroubleGiven
)

// Creation is what is known about creating the record's incarnation.
type Creation uint8

const (
	// CreationNone means that create was certainly not called.
	CreationNone Creation = iota
	// CreationRefused means that this process called it, and every answer meant that nothing was
	// made. Drivers may misclassify an error as such an answer.
	CreationRefused
	// CreationUnrecorded means that the record is the first on this object, as far as the object
	// shows. Its metadata may have been lost, so only an observation shows whether anything was
	// ever created.
	CreationUnrecorded
	// CreationPossible means that create may have been called, and its effect may still appear.
	CreationPossible
	// CreationSettled means that an earlier process may have called it, but so long ago that its
	// effect is visible by now.
	CreationSettled
	// CreationCalled means that this process called it and has not seen the resource since.
	CreationCalled
	// CreationSeen means that the resource was seen after its creation.
	CreationSeen
)

// Seen is what an observation showed.
type Seen struct {
	// Phase is the resource's phase.
	Phase Phase
	// Observed is false until the resource was observed.
	Observed bool
	// Source is where this state comes from.
	Source Source
	// Recoverable reports, for PhaseFailed, whether trying again can help.
	Recoverable bool
	// Owner is who owns the resource.
	Owner Owner
	// Marked reports whether the mark names the very incarnation that the record describes.
	Marked bool
	// Rival is another living object that claims the same resource. It matters only where no mark
	// proves that the resource is ours.
	Rival Rival
}

// Source is where the state of a resource comes from.
type Source uint8

const (
	// SourceRead means that this pass observed it.
	SourceRead Source = iota
	// SourceAnswer means that the API returned it with its answer to a change of this pass.
	SourceAnswer
	// SourceMemory means that the API returned it with an earlier answer, no longer ago than a
	// call may take. It is used only if reads of the API never lag behind writes.
	SourceMemory
)

// Rival is the standing of another living object that claims the same resource.
type Rival uint8

const (
	// RivalNone means that there is no rival, or that our claim is better.
	RivalNone Rival = iota
	// RivalHolds means that the rival's claim is better than ours.
	RivalHolds
	// RivalEqual means that both records say that the resource is theirs, and nothing proves
	// either.
	RivalEqual
)

// Owner is who owns a resource.
type Owner uint8

const (
	// OwnerNobody means that the resource bears no mark, and the record does not say that it is
	// ours.
	OwnerNobody Owner = iota
	// OwnerUs means that the resource bears our mark.
	OwnerUs
	// OwnerRecorded means that only the record says that the resource is ours; if it was adopted,
	// the adoption policy still allows that.
	OwnerRecorded
	// OwnerRestored means that the resource bears the mark of our object as it was before a
	// restore from backup, and the record confirms that.
	OwnerRestored
	// OwnerNamesake means that the resource bears the mark of another object of our kind,
	// namespace and name.
	OwnerNamesake
	// OwnerOther means that the resource bears another object's mark.
	OwnerOther
	// OwnerForeign means that the resource bears the mark of another cluster, whose objects are
	// not visible here.
	OwnerForeign
	// OwnerStated means that the resource bears the mark of the owner that the adoption policy
	// names.
	OwnerStated
)

// Found is the result of a search by mark.
type Found uint8

const (
	// FoundNotAsked means that there was no search in this pass.
	FoundNotAsked Found = iota
	// FoundNothing, FoundOne and FoundMany count the resources that bear our mark.
	FoundNothing
	FoundOne
	FoundMany
)

// Differs is how the resource differs from the spec, by what it takes to change that.
type Differs struct {
	// InPlace, Recreate and Unsupported report whether there is a change of that effect.
	InPlace, Recreate, Unsupported bool
	// Ignored reports whether there is a difference that is shown but not acted on. The resource
	// still counts as in sync.
	Ignored bool
}

// Ours reports whether the resource is ours without adoption.
func (s Seen) Ours() bool {
	return s.Owner == OwnerUs || s.Owner == OwnerRecorded && s.Rival == RivalNone
}

// Any reports whether there is a difference to act on.
func (d Differs) Any() bool { return d.InPlace || d.Recreate || d.Unsupported }

// Op is a change that the API has accepted and goes on with, and that it lets the driver poll.
type Op struct {
	// State is the state of the operation.
	State OpState
	// Of is the call that started it: ActionCreate, ActionUpdate or ActionDelete.
	Of Action
	// Polled reports whether this pass has already polled the operation.
	Polled bool
	// Blocks reports whether the API has refused to delete the resource while the operation runs.
	Blocks bool
	// Cancellable reports whether the driver can cancel the operation, and has not been asked to yet.
	Cancellable bool
}

// OpState is the state of an operation.
type OpState uint8

const (
	// OpNone means that there is no operation, or that it has ended.
	OpNone OpState = iota
	// OpRunning means that the operation is running.
	OpRunning
	// OpOverdue means that the operation is still running past its deadline.
	OpOverdue
)

// Approval is whether a user must agree to losing what a resource holds.
type Approval uint8

const (
	// ApprovalNotNeeded means that no agreement is needed.
	ApprovalNotNeeded Approval = iota
	// ApprovalMissing means that a user must agree first.
	ApprovalMissing
	// ApprovalGiven means that a user agreed.
	ApprovalGiven
)

// Did is what a pass has already called. Each is called at most once per pass.
type Did struct {
	Create, Update, Delete, Cancel, Mark, Unmark, Complete, Finish bool
}

// Answer is the outcome of a call.
type Answer struct {
	// Failed reports an error; Class is what it means.
	Class  Class
	Failed bool
	// Of is the call; ActionNone before the first.
	Of Action
	// Timeout reports whether the call exceeded its deadline.
	Timeout bool
	// Late reports whether the API had accepted the call, and its operation failed.
	Late bool
}
