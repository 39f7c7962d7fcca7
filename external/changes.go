package external

// Effect is what it takes to make one difference go away.
type Effect int

const (
	// InPlace: an Update does it.
	InPlace Effect = iota
	// Recreate: the thing must be deleted and created anew.
	Recreate
	// Unsupported: no call can do it; a person must change the spec.
	Unsupported
	// Ignored: shown, not acted on.
	Ignored
)

// Change is one difference between what is wanted and what is there.
type Change struct {
	// Path is the field in the object, for example "spec.maxBytes".
	Path string
	// Want and Have are the values on both sides. They reach status and traces unless
	// Sensitive.
	Want, Have any
	Effect     Effect
	Sensitive  bool
}

// Changes are all differences, in an order that does not vary.
type Changes []Change
