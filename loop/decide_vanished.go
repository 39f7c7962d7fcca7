package loop

// parting is what the end of an object calls for.
type parting int

const (
	// partingOrderly: nothing is left to do.
	partingOrderly parting = iota
	// partingVanished: the object was deleted in spite of our finalizer and is to be cleaned up.
	partingVanished
	// partingUnclear: the watch did not show how it went, and nothing says that it is to be
	// cleaned up.
	partingUnclear
)

// farewell is what is known about the end of an object.
type farewell struct {
	// finalizer: ours was on the last version, or the last one that was seen.
	finalizer bool
	// marked: that version was marked for deletion.
	marked bool
	// seen: the watch showed its deletion, so that the version is its last one. Otherwise the watch
	// had a gap, in which anything may have happened.
	seen bool
	// released: this process took its finalizer off.
	released bool
	// fresh: this process put its finalizer on so recently that a deletion may have been under
	// way then.
	fresh bool
	// met: this process worked on the object.
	met bool
}

// part says how an object went.
//
// A DELETE that reads the object before our finalizer is on it and removes it after that removes the
// finalizer too. It leaves no deletion timestamp, which distinguishes it from the ordinary way: an
// object whose last finalizer is removed is deleted in the same instant, so its last version still
// shows the finalizer, together with the timestamp. Whoever removed it then (we, a process before us,
// or a person who wants the object gone) wanted the object to go.
//
// After a gap in the watch the last version seen proves little: the object may have been deleted
// orderly, or with its whole cluster, if the API server came back with an older backup. Cleaning up
// could then destroy what nobody wanted to delete. So only what this process had just put
// its finalizer on counts as vanished.
func part(f farewell) parting {
	switch {
	case !f.finalizer, f.marked, f.released:
		return partingOrderly
	case f.seen, f.fresh:
		return partingVanished
	case f.met:
		return partingUnclear
	}
	return partingOrderly
}
