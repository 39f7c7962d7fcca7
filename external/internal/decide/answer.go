package decide

import "fmt"

// Class is what an error of an external API means to the operator.
type Class int

const (
	// ClassUnknown leaves the error to the default rules, which end in ClassTransient.
	ClassUnknown Class = iota
	// ClassTransient means that trying again may help.
	ClassTransient
	// ClassThrottled means that there were too many requests. Nothing is called for any object of
	// the kind until the time that the API asked for has passed, reads and deletions included.
	ClassThrottled
	// ClassDenied means that the credentials or permissions do not suffice.
	ClassDenied
	// ClassInvalid means that the request itself is refused; only a changed spec helps.
	ClassInvalid
	// ClassConflict means that the state of the resource does not allow the request now.
	ClassConflict
	// ClassTerminal means that a user has to act.
	ClassTerminal
	// ClassAmbiguous means that it is unknown whether a mutating request took effect; only an
	// observation helps.
	ClassAmbiguous
	// ClassNotReady means that something that the request needs does not exist yet; waiting helps,
	// and this is not a failure.
	ClassNotReady
)

// String returns the class in one word.
func (c Class) String() string {
	switch c {
	case ClassUnknown:
		return "Unknown"
	case ClassTransient:
		return "Transient"
	case ClassThrottled:
		return "Throttled"
	case ClassDenied:
		return "Denied"
	case ClassInvalid:
		return "Invalid"
	case ClassConflict:
		return "Conflict"
	case ClassTerminal:
		return "Terminal"
	case ClassAmbiguous:
		return "Ambiguous"
	case ClassNotReady:
		return "NotReady"
	}
	return fmt.Sprintf("Class(%d)", int(c))
}
