package loop

// parting is what the end of an object calls for.
type parting int

const (
	// partingOrderly: nothing is left to do.
	partingOrderly parting = iota
	// partingVanished: the object went past our finalizer and is to be cleaned up.
	partingVanished
	// partingUnclear: nobody saw how it went, and nothing tells that it is to be cleaned up.
	partingUnclear
)

// farewell is what is known about the end of an object.
type farewell struct {
	// finalizer: ours was on the last version, or the last one that was seen.
	finalizer bool
	// marked: that version was marked for deletion.
	marked bool
	// seen: its deletion was seen, so that the version is the last one indeed. Else the watch
	// had a gap, and anything may have happened in it.
	seen bool
	// released: this process took its finalizer off.
	released bool
	// fresh: this process put its finalizer on so lately that a deletion may have been under
	// way then.
	fresh bool
	// met: this process worked on the object.
	met bool
}

// part says how an object went.
//
// A DELETE that read the object before our finalizer was on it, and removed it after, takes the
// finalizer along. It leaves no deletion mark, and that is how it is told from the ordinary
// way: an object whose last finalizer goes is removed in the same instant, so that its last
// version still shows the finalizer, but beside the mark. Whoever took it off then, we, a
// process before us or a person who wants to be rid of the object, wanted to let it go.
//
// After a gap in the watch the last version seen proves little: the object may have gone in
// order, or with its whole cluster, when the API server came back with an older backup. To
// clean up then could destroy what nobody wanted gone. So only what this process had just put
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
