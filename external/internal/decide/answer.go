package decide

import "fmt"

// Class is what an error of an external API means to the operator.
type Class int

const (
	// ClassUnknown: leave it to the default rules, which end in Transient.
	ClassUnknown Class = iota
	// ClassTransient: trying again may help.
	ClassTransient
	// ClassThrottled: too many requests; nothing is called for any object of the kind until
	// the time that the API asked for is over, reads and deletions included.
	ClassThrottled
	// ClassDenied: credentials or permissions.
	ClassDenied
	// ClassInvalid: the request itself is refused; only a new spec helps.
	ClassInvalid
	// ClassConflict: the state of the thing does not allow the request now.
	ClassConflict
	// ClassTerminal: nothing but a person helps.
	ClassTerminal
	// ClassAmbiguous: unknown whether a mutating request took effect; only looking helps.
	ClassAmbiguous
	// ClassNotReady: something that the request needs is not there yet; waiting helps and
	// it is not a failure.
	ClassNotReady
)

// String is the class in one word.
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
