package graph

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// spec is what is desired of a node: a version, and how it comes and goes.
type spec struct {
	node      Node // without facts
	version   int
	immutable bool // it has to be created again to reach another version
}

// object is what exists.
type object struct {
	version            int
	immutable          bool
	ours               bool
	leaving, finalizer bool // the finalizer is somebody else's, and keeps it when it is deleted
	held               bool
	health             Health
	unseen             bool // not observed at present
}

// record is what is durable of a node.
type record struct {
	node               Node // how it goes
	applied, completed int  // versions; zero means none
}

// world is what surrounds the scheduler: the nodes as they are desired, recorded and real. It breaks
// whatever may break, unless it is kind.
type world struct {
	rng     *rand.Rand
	kind    bool
	strict  bool
	desired map[Key]spec
	objects map[Key]*object
	records map[Key]record // durable
	// worked are the versions that were purged. None of them may be created again.
	worked   map[Key]int
	versions int
}

func newWorld(seed uint64) *world {
	return &world{
		rng: rand.New(rand.NewPCG(seed, 3)), desired: map[Key]spec{}, objects: map[Key]*object{},
		records: map[Key]record{}, worked: map[Key]int{},
	}
}

func (w *world) likely(n int) bool { return w.rng.IntN(n) > 0 }

// desire changes what is desired: some nodes, all, or nothing.
func (w *world) desire() {
	if !w.likely(6) {
		clear(w.desired)
		return
	}
	afresh := !w.likely(4)
	keys := []Key{"a", "b", "c", "d", "e", "f", "g", "h"}
	for i, key := range keys {
		switch {
		case !w.likely(4):
			delete(w.desired, key)
		case afresh || !w.likely(3):
			w.desired[key] = w.spec(key, keys[:i])
		}
	}
	w.repair()
}

// spec returns a new spec that needs only nodes with smaller keys, so that there are no cycles.
func (w *world) spec(key Key, others []Key) spec {
	w.versions++
	n := Node{
		Key: key, Wanted: true, Apply: w.rng.IntN(3), Delete: w.rng.IntN(3),
		Rank: w.rng.IntN(3), DeleteRank: w.rng.IntN(3), Orphan: !w.likely(6),
	}
	if !w.likely(4) {
		n.Purge = new(n.Apply + w.rng.IntN(4))
	}
	for _, other := range others {
		if !w.likely(4) {
			n.Needs = append(n.Needs, other)
		}
	}
	return spec{node: n, version: w.versions, immutable: !w.likely(3)}
}

// repair drops the needs that contradict what is desired.
func (w *world) repair() {
	for key, s := range w.desired {
		s.node.Needs = slices.DeleteFunc(slices.Clone(s.node.Needs), func(need Key) bool {
			other, found := w.desired[need]
			return !found || other.node.Apply > s.node.Apply || other.node.Delete < s.node.Delete
		})
		w.desired[key] = s
	}
}

// nodes are what a caller knows when its pass begins.
func (w *world) nodes() []Node {
	var nodes []Node
	for _, key := range slices.Sorted(maps.Keys(w.union())) {
		n := Node{Key: key}
		if s, wanted := w.desired[key]; wanted {
			n = s.node
		} else if r, recorded := w.records[key]; recorded {
			n = r.node
			n.Wanted = false
		}
		n.Facts = w.facts(key, w.records)
		nodes = append(nodes, n)
	}
	return nodes
}

func (w *world) union() map[Key]bool {
	keys := map[Key]bool{}
	for key := range w.desired {
		keys[key] = true
	}
	for key := range w.records {
		keys[key] = true
	}
	return keys
}

func (w *world) facts(key Key, records map[Key]record) Facts {
	s, wanted := w.desired[key]
	r, recorded := records[key]
	f := Facts{Recorded: recorded, Presence: Absent}
	if wanted && recorded {
		f.Recorded = leavesAs(r.node, s.node)
		f.Applied, f.Completed = r.applied == s.version, r.completed == s.version
	}
	o := w.objects[key]
	switch {
	case o == nil:
		return f
	case !o.ours && wanted:
		f.Refused = "belongs to another"
		return f
	case !o.ours:
		return f
	}
	f.Health = o.health
	if o.held {
		f.Held = "in use"
	}
	switch {
	case o.unseen:
		f.Presence = Unknown
	case o.leaving:
		f.Presence = Leaving
	default:
		f.Presence = Present
	}
	if wanted && o.version != s.version {
		f.Change = NeedsUpdate
		if o.immutable || s.immutable {
			f.Change = NeedsRecreate
		}
	}
	return f
}

// leaves is what must be recorded of a node before anything is done: how it goes.
func leaves(n Node) Node {
	return Node{Key: n.Key, Delete: n.Delete, DeleteRank: n.DeleteRank, Needs: n.Needs, Orphan: n.Orphan}
}

func leavesAs(a, b Node) bool { return fmt.Sprint(leaves(a)) == fmt.Sprint(leaves(b)) }

// ready reports whether a wanted node is, in truth.
func (w *world) ready(s spec, records map[Key]record) bool {
	o := w.objects[s.node.Key]
	works := o != nil && o.ours && !o.leaving && o.version == s.version && o.health == Current
	return works || w.completed(s, records)
}

func (w *world) completed(s spec, records map[Key]record) bool {
	return records[s.node.Key].completed == s.version
}

func (w *world) exists(key Key) bool { o := w.objects[key]; return o != nil && o.ours }

// remove deletes an object, or begins to.
func (w *world) remove(key Key) {
	if o := w.objects[key]; o.finalizer {
		o.leaving = true
		return
	}
	delete(w.objects, key)
}

// tick lets time pass, and others act.
func (w *world) tick() {
	for _, key := range slices.Sorted(maps.Keys(w.objects)) {
		o := w.objects[key]
		if w.kind {
			w.soothe(key, o)
			continue
		}
		w.disturb(key, o)
	}
	if !w.kind && !w.likely(20) {
		for _, key := range slices.Sorted(maps.Keys(w.desired)) {
			if w.objects[key] == nil && !w.likely(4) {
				w.objects[key] = &object{health: Current}
			}
		}
	}
	if !w.kind && !w.likely(12) {
		w.desire()
	}
}

// soothe does one object some good.
func (w *world) soothe(key Key, o *object) {
	_, wanted := w.desired[key]
	o.unseen, o.held, o.finalizer = false, false, false
	switch {
	case o.leaving, !o.ours && wanted:
		delete(w.objects, key)
	case w.likely(3):
		o.health = Current
	}
}

// disturb does something to one object.
func (w *world) disturb(key Key, o *object) {
	o.unseen = o.unseen && w.likely(2)
	switch w.rng.IntN(24) {
	case 0, 1, 2:
		o.health = Health(w.rng.IntN(4))
	case 3, 4, 5, 6, 7, 8:
		o.health = Current
	case 9:
		o.finalizer = !o.finalizer
	case 10:
		o.held = !o.held
	case 11:
		o.unseen = true
	case 12:
		o.version = -o.version // edited by somebody
	case 13:
		w.remove(key) // deleted by somebody
		return
	}
	if o.leaving && !w.likely(3) {
		delete(w.objects, key)
	}
}
