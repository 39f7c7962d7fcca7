package ui

import (
	"cmp"
	"maps"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

// branch is an object in the tree, with what it is made of in the order in which that is applied.
type branch struct {
	model.Object
	// Blocks says what the object has to do with the one of the page not being ready; empty if that is nothing.
	Blocks part   `json:"blocks,omitempty"`
	Waves  []wave `json:"waves,omitempty"`

	// busy: it is on the path, or something below it is not fine.
	busy bool
}

// part is what an object has to do with another one not being ready.
type part string

// The parts. The root cause is the end of the path.
const (
	blocked   part = "is blocked"
	blocks    part = "blocks"
	rootCause part = "root cause"
)

// wave is objects that are applied together. Order is nil if they have none.
type wave struct {
	Order    *int16   `json:"order,omitempty"`
	Ready    bool     `json:"ready"`
	Branches []branch `json:"branches,omitempty"`
	Folded   []fold   `json:"folded,omitempty"`
}

// fold is objects of a kind that are fine, so that they are shown as one.
type fold struct {
	Kind     string   `json:"kind"`
	Branches []branch `json:"branches"`
}

// many is how many objects of a kind are folded at least.
const many = 3

// treeOf returns the tree of an object in which the path to the root cause is marked. What is on the path and not in the tree, such as
// a Secret that an object names, is put below what waits for it.
func treeOf(o model.Object, chain []model.Link) branch {
	b := grown(o, chain)
	if b.Blocks == blocks {
		b.Blocks = blocked
	}
	return b
}

// grown returns an object with what is below it. chain leads from it to the root cause if its first link is the object.
func grown(o model.Object, chain []model.Link) branch {
	b, below := branch{Object: o}, o.Objects
	b.Objects = nil
	switch {
	case len(chain) == 0 || chain[0].Ref != o.Ref:
		chain = nil
	case len(chain) == 1:
		b.Blocks, chain = rootCause, nil
	default:
		b.Blocks, chain = blocks, chain[1:]
		if !slices.ContainsFunc(below, func(next model.Object) bool { return next.Ref == chain[0].Ref }) {
			next := chain[0].Object
			next.Relation = "needed"
			below = slices.Concat([]model.Object{next}, below)
		}
	}
	for _, next := range below {
		w := b.wave(next.Wave)
		w.Ready = w.Ready && fine(next)
		w.Branches = append(w.Branches, grown(next, chain))
	}
	slices.SortStableFunc(b.Waves, func(a, b wave) int { return cmp.Compare(a.place(), b.place()) })
	for i := range b.Waves {
		b.Waves[i].fold()
	}
	b.busy = b.Blocks != "" || !fine(o)
	return b
}

// fine reports whether nothing is to be seen of an object and what is below it.
func fine(o model.Object) bool {
	return (o.Ready == "" || o.Ready == metav1.ConditionTrue) && !o.Deleting && o.Paused == "" &&
		!slices.ContainsFunc(o.Objects, func(next model.Object) bool { return !fine(next) })
}

// wave returns the wave of an order, which is added if there is none.
func (b *branch) wave(order *int16) *wave {
	added := wave{Order: order, Ready: true}
	at := slices.IndexFunc(b.Waves, func(w wave) bool { return w.place() == added.place() })
	if at < 0 {
		at = len(b.Waves)
		b.Waves = append(b.Waves, added)
	}
	return &b.Waves[at]
}

// place orders waves. What has no order, such as what dependents own, is not waited for and comes last.
func (w *wave) place() int {
	if w.Order == nil {
		return math.MaxInt
	}
	return int(*w.Order)
}

// fold puts objects of a kind together that are fine, and of which there are many.
func (w *wave) fold() {
	kinds := map[string][]branch{}
	foldable := func(b branch) bool { return !b.busy && b.Relation != "external" }
	for _, b := range w.Branches {
		if foldable(b) {
			kinds[b.Kind] = append(kinds[b.Kind], b)
		}
	}
	w.Branches = slices.DeleteFunc(w.Branches, func(b branch) bool { return foldable(b) && len(kinds[b.Kind]) >= many })
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if len(kinds[kind]) >= many {
			w.Folded = append(w.Folded, fold{kind, kinds[kind]})
		}
	}
}
