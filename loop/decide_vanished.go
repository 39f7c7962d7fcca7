package loop

// removal says how an object was removed from the API server.
type removal int

const (
	// removalOrderly: nothing is left to do.
	removalOrderly removal = iota
	// removalVanished: the object was removed despite our finalizer, and Cleanup must run.
	removalVanished
	// removalUnclear: the watch did not show how it was removed, and nothing proves that Cleanup must
	// run.
	removalUnclear
)

// removalFacts are what is known about the removal of an object.
type removalFacts struct {
	// finalizer means that the last version that was seen had our finalizer.
	finalizer bool
	// marked means that this version had a deletion timestamp.
	marked bool
	// seen means that the watch delivered the deletion, so this version is the last one. Otherwise the
	// watch had a gap, in which anything may have happened.
	seen bool
	// released means that this process removed the finalizer.
	released bool
	// fresh means that this process added the finalizer so recently that a deletion may have been in
	// progress then.
	fresh bool
	// met means that this process has reconciled the object.
	met bool
}

// judgeRemoval says how an object was removed.
//
// A DELETE that reads the object before it has our finalizer, and removes it afterwards, removes the
// finalizer, too. Then the last version has no deletion timestamp. In an ordinary deletion, the object is
// removed in the same instant as its last finalizer, so the last version still has the finalizer,
// together with the timestamp. Whoever removed that finalizer (this process, an earlier one, or a user)
// wanted the object to be removed.
//
// After a gap in the watch, the last version that was seen proves little: the object may have been
// deleted as usual, or the API server may have been restored from an older backup. Cleaning up
// could then destroy what nobody wanted to delete. So an object counts as vanished only if this process
// has just added its finalizer.
func judgeRemoval(f removalFacts) removal {
	switch {
	case !f.finalizer, f.marked, f.released:
		return removalOrderly
	case f.seen, f.fresh:
		return removalVanished
	case f.met:
		return removalUnclear
	}
	return removalOrderly
}
