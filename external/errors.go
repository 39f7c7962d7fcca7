package external

// Class is what an error of an external API means to the operator.
type Class int

const (
	// ClassUnknown: leave it to the default rules, which end in Transient.
	ClassUnknown Class = iota
	// ClassTransient: trying again may help.
	ClassTransient
	// ClassThrottled: too many requests; the whole scope waits.
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
)
